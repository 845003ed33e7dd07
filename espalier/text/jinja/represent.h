// str() and repr() of values, numbers as Python writes and reads them, and JSON as json.dumps
// writes it. A container's text is marked as user text as a whole when any part of it is: quotes
// and brackets around user text have no meaning of their own. All functions pay from the budget for
// what they write.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

Result<Text> to_text(Budget& budget, const Value& value);  // str(value)
Result<Text> repr(Budget& budget, const Value& value);

std::string float_repr(double value);
// As Python's int(text, base) and float(text): spaces around, underscores between digits.
std::optional<Value> parse_integer(std::string_view text, int base);  // nothing also past 64 bits
std::optional<double> parse_float(std::string_view text);
// float -> int towards zero; nothing for NaN, infinities and what is beyond 64 bits.
std::optional<int64_t> truncate_to_integer(double value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level of it; without it everything is on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
Result<Text> to_json(Budget& budget, const Value& value, const JsonStyle& style);

}  // namespace espalier::text::jinja
