// Python's str methods on Text: every byte of a result keeps the mark it had. Shared by the methods
// of strings and the filters. What can grow pays from the budget first.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "espalier/text/jinja/budget.h"
#include "espalier/text/jinja/text.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {

Text change_case(const Text& text, Case to);  // upper(), lower(), casefold()
Text capitalize(const Text& text);
Text title_case(const Text& text);  // str.title(); the filter `title` has other word borders
Text swap_case(const Text& text);

// strip(), lstrip(), rstrip(); without `chars` white space goes.
Text strip(const Text& text, std::optional<std::string_view> chars, bool left, bool right);
// split() and rsplit(); without a separator at runs of white space. `limit` < 0: no limit.
Result<std::vector<Text>> split(Budget& budget, const Text& text,
                                std::optional<std::string_view> separator, int64_t limit);
Result<std::vector<Text>> split_from_right(Budget& budget, const Text& text,
                                           std::optional<std::string_view> separator,
                                           int64_t limit);
Result<std::vector<Text>> split_lines(Budget& budget, const Text& text, bool keep_ends);

Result<Text> replace(Budget& budget, const Text& text, const Text& from, const Text& to,
                     int64_t limit);
Result<Text> repeat_text(Budget& budget, const Text& text, uint64_t count);
Result<Text> join_texts(Budget& budget, const Text& separator, const std::vector<Text>& parts);

enum class Side { kLeft, kRight, kBoth };  // where padding goes
Result<Text> pad(Budget& budget, const Text& text, int64_t width, const Text& fill, Side side);
Result<Text> zero_fill(Budget& budget, const Text& text, int64_t width);
Result<Text> expand_tabs(Budget& budget, const Text& text, int64_t tab_size);

}  // namespace espalier::text::jinja
