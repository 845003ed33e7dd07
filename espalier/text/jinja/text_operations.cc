#include "espalier/text/jinja/text_operations.h"

#include <algorithm>

namespace espalier::text::jinja {
namespace {

// Calls visit(code point, its bytes, from_user) for each character.
template <typename Visit>
void for_each_character(const Text& text, Visit visit) {
  text.for_each_run([&](std::string_view run, bool from_user) {
    for (size_t i = 0; i < run.size();) {
      const Character c = decode_at(run, i);
      visit(c.code_point, run.substr(i, c.size), from_user);
      i += c.size;
    }
  });
}

bool is_cased_or_apostrophe_like(char32_t c) {
  // What Unicode calls case-ignorable and what occurs in words: apostrophes, middle dots, marks.
  return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019 || c == 0xAD ||
         (c >= 0x300 && c <= 0x36F);
}

// Capital sigma becomes the final form at the end of a word: a cased letter before it and none
// after.
bool is_final_sigma(const std::vector<char32_t>& characters, size_t at) {
  bool cased_before = false;
  for (size_t i = at; i-- > 0;) {
    if (is_cased_or_apostrophe_like(characters[i])) continue;
    cased_before = is_cased(characters[i]);
    break;
  }
  if (!cased_before) return false;
  for (size_t i = at + 1; i < characters.size(); ++i) {
    if (is_cased_or_apostrophe_like(characters[i])) continue;
    return !is_cased(characters[i]);
  }
  return true;
}

// Every character in the case that `choose(index, code point)` names, or as it is where that names
// none.
template <typename Choose>
Text recase(const Text& text, Choose choose) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  std::vector<char32_t> characters;
  if (text.bytes().find("\xCE\xA3") != std::string::npos) {
    for_each_character(text, [&](char32_t c, auto, auto) { characters.push_back(c); });
  }
  Text result;
  size_t index = 0;
  for_each_character(text, [&](char32_t c, std::string_view bytes, bool from_user) {
    std::string mapped;
    const std::optional<Case> to = choose(index, c);
    if (!to.has_value()) {
      mapped = bytes;
    } else if (c == kCapitalSigma && *to == Case::kLower && is_final_sigma(characters, index)) {
      mapped = "\xCF\x82";
    } else {
      append_in_case(mapped, c, *to);
    }
    result.append(mapped, from_user);
    ++index;
  });
  return result;
}

// Where white space ends (`of_space`) or begins, from `offset` on.
size_t skip(std::string_view bytes, size_t offset, bool of_space) {
  while (offset < bytes.size()) {
    const Character c = decode_at(bytes, offset);
    if (is_space(c.code_point) != of_space) break;
    offset += c.size;
  }
  return offset;
}

// The same backwards: the offset behind which only white space (or only words) stands up to
// `offset`.
size_t skip_back(std::string_view bytes, size_t offset, bool of_space) {
  while (offset > 0) {
    size_t begin = offset - 1;
    while (begin > 0 && (static_cast<unsigned char>(bytes[begin]) & 0xC0) == 0x80) --begin;
    if (is_space(decode_at(bytes, begin).code_point) != of_space) break;
    offset = begin;
  }
  return offset;
}

Error empty_separator() {
  return Error{.what = "split with an empty separator",
               .expected = "a separator, or none",
               .actual = "''",
               .fix = "Use the list filter to get single characters."};
}

}  // namespace

Text change_case(const Text& text, Case to) {
  return recase(text, [to](size_t, char32_t) { return to; });
}

Text capitalize(const Text& text) {
  return recase(text, [](size_t i, char32_t) { return i == 0 ? Case::kTitle : Case::kLower; });
}

Text title_case(const Text& text) {
  bool in_word = false;
  return recase(text, [&](size_t, char32_t c) {
    const Case to = in_word ? Case::kLower : Case::kTitle;
    in_word = is_cased(c);
    return to;
  });
}

Text swap_case(const Text& text) {
  return recase(text, [](size_t, char32_t c) -> std::optional<Case> {
    if (is_upper(c)) return Case::kLower;
    return is_lower(c) ? std::optional<Case>(Case::kUpper) : std::nullopt;
  });
}

Text strip(const Text& text, std::optional<std::string_view> chars, bool left, bool right) {
  const std::string& bytes = text.bytes();
  const auto goes = [&](size_t begin, size_t length) {
    if (!chars.has_value()) return is_space(decode_at(bytes, begin).code_point);
    const std::string_view character = std::string_view(bytes).substr(begin, length);
    for (size_t i = 0; i < chars->size();) {
      const size_t size = decode_at(*chars, i).size;
      if (chars->substr(i, size) == character) return true;
      i += size;
    }
    return false;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (left && begin < end) {
    const size_t length = decode_at(bytes, begin).size;
    if (!goes(begin, length)) break;
    begin += length;
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<unsigned char>(bytes[last]) & 0xC0) == 0x80) --last;
    if (!goes(last, end - last)) break;
    end = last;
  }
  return text.substr(begin, end);
}

Result<std::vector<Text>> split(Budget& budget, const Text& text,
                                std::optional<std::string_view> separator, int64_t limit) {
  RETURN_IF_ERROR(budget.spend(text.size()));
  const std::string& bytes = text.bytes();
  std::vector<Text> parts;
  if (separator.has_value()) {
    if (separator->empty()) return empty_separator();
    size_t begin = 0;
    for (size_t at = bytes.find(*separator); at != std::string::npos && limit != 0;
         at = bytes.find(*separator, begin), --limit) {
      RETURN_IF_ERROR(budget.spend(Budget::kStepBytes));
      parts.push_back(text.substr(begin, at));
      begin = at + separator->size();
    }
    parts.push_back(text.substr(begin, bytes.size()));
    return parts;
  }
  size_t begin = skip(bytes, 0, true);
  for (; begin < bytes.size() && limit != 0; --limit) {
    const size_t end = skip(bytes, begin, false);
    RETURN_IF_ERROR(budget.spend(Budget::kStepBytes));
    parts.push_back(text.substr(begin, end));
    begin = skip(bytes, end, true);
  }
  if (begin < bytes.size()) {
    parts.push_back(text.substr(begin, bytes.size()));
  }
  return parts;
}

Result<std::vector<Text>> split_from_right(Budget& budget, const Text& text,
                                           std::optional<std::string_view> separator,
                                           int64_t limit) {
  RETURN_IF_ERROR(budget.spend(text.size()));
  const std::string& bytes = text.bytes();
  std::vector<Text> parts;
  size_t end = bytes.size();
  if (separator.has_value()) {
    if (separator->empty()) return empty_separator();
    while (limit != 0 && end >= separator->size()) {
      const size_t at = bytes.rfind(*separator, end - separator->size());
      if (at == std::string::npos) break;
      RETURN_IF_ERROR(budget.spend(Budget::kStepBytes));
      parts.push_back(text.substr(at + separator->size(), end));
      end = at;
      --limit;
    }
    parts.push_back(text.substr(0, end));
  } else {
    end = skip_back(bytes, end, true);
    for (; end > 0 && limit != 0; --limit) {
      const size_t begin = skip_back(bytes, end, false);
      RETURN_IF_ERROR(budget.spend(Budget::kStepBytes));
      parts.push_back(text.substr(begin, end));
      end = skip_back(bytes, begin, true);
    }
    if (end > 0) parts.push_back(text.substr(0, end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Result<std::vector<Text>> split_lines(Budget& budget, const Text& text, bool keep_ends) {
  RETURN_IF_ERROR(budget.spend(text.size()));
  const std::string& bytes = text.bytes();
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const Character c = decode_at(bytes, i);
    size_t after = i + c.size;
    if (is_line_break(c.code_point)) {
      if (c.code_point == '\r' && after < bytes.size() && bytes[after] == '\n') ++after;
      RETURN_IF_ERROR(budget.spend(Budget::kStepBytes));
      lines.push_back(text.substr(begin, keep_ends ? after : i));
      begin = after;
    }
    i = after;
  }
  if (begin < bytes.size()) lines.push_back(text.substr(begin, bytes.size()));
  return lines;
}

Result<Text> replace(Budget& budget, const Text& text, const Text& from, const Text& to,
                     int64_t limit) {
  RETURN_IF_ERROR(budget.spend(text.size()));
  const std::string& bytes = text.bytes();
  Text result;
  size_t begin = 0;
  size_t search = 0;
  for (; limit != 0; --limit) {
    // An empty `from` stands before every character and at the end.
    const size_t found = from.empty() ? search : bytes.find(from.bytes(), search);
    if (found == std::string::npos || found > bytes.size()) break;
    RETURN_IF_ERROR(budget.spend(to.size() + 16));
    RETURN_IF_ERROR(budget.check_size(result.size() + to.size() + bytes.size()));
    result.append(text.substr(begin, found));
    result.append(to);
    begin = found + from.size();
    search = begin;
    if (!from.empty()) continue;
    if (found == bytes.size()) break;
    search = found + decode_at(bytes, found).size;
  }
  result.append(text.substr(begin, bytes.size()));
  return result;
}

Result<Text> repeat_text(Budget& budget, const Text& text, uint64_t count) {
  Text result;
  if (text.empty()) return result;
  RETURN_IF_ERROR(budget.spend(count, text.size()));
  for (uint64_t i = 0; i < count; ++i) result.append(text);
  return result;
}

Result<Text> join_texts(Budget& budget, const Text& separator, const std::vector<Text>& parts) {
  Text result;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint64_t bytes = (i > 0 ? separator.size() : 0) + parts[i].size();
    RETURN_IF_ERROR(budget.spend(bytes));
    RETURN_IF_ERROR(budget.check_size(result.size() + bytes));
    if (i > 0) result.append(separator);
    result.append(parts[i]);
  }
  return result;
}

Result<Text> pad(Budget& budget, const Text& text, int64_t width, const Text& fill, Side side) {
  const auto length = static_cast<int64_t>(code_point_count(text.bytes()));
  if (width <= length) return text;
  const int64_t total = width - length;
  // str.center puts the odd one to the left where the width is odd.
  const int64_t left = side == Side::kLeft    ? total
                       : side == Side::kRight ? 0
                                              : total / 2 + (total & width & 1);
  ASSIGN_OR_RETURN(Text result, repeat_text(budget, fill, static_cast<uint64_t>(left)));
  result.append(text);
  ASSIGN_OR_RETURN(const Text tail, repeat_text(budget, fill, static_cast<uint64_t>(total - left)));
  result.append(tail);
  return result;
}

Result<Text> zero_fill(Budget& budget, const Text& text, int64_t width) {
  const bool has_sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  const size_t digits = has_sign ? 1 : 0;
  ASSIGN_OR_RETURN(const Text filled,
                   pad(budget, text.substr(digits, text.size()),
                       width - static_cast<int64_t>(digits), Text("0", false), Side::kLeft));
  Text result = text.substr(0, digits);
  result.append(filled);
  return result;
}

Result<Text> expand_tabs(Budget& budget, const Text& text, int64_t tab_size) {
  Text result;
  int64_t column = 0;
  Status status = Ok{};
  for_each_character(text, [&](char32_t c, std::string_view bytes, bool from_user) {
    if (!status.ok()) return;
    if (c == '\t') {
      const int64_t spaces = tab_size > 0 ? tab_size - column % tab_size : 0;
      auto blank = repeat_text(budget, Text(" ", from_user), static_cast<uint64_t>(spaces));
      if (!blank.ok()) return void(status = blank.error());
      result.append(*blank);
      column += spaces;
      status = budget.check_size(result.size());
    } else {
      result.append(bytes, from_user);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  });
  RETURN_IF_ERROR(status);
  return result;
}

}  // namespace espalier::text::jinja
