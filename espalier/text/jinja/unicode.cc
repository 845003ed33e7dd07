#include "espalier/text/jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "espalier/text/jinja/unicode_table.h"

namespace espalier::text::jinja {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool in_table(std::span<const CodePointRange> ranges, char32_t c) {
  const auto found =
      std::lower_bound(ranges.begin(), ranges.end(), c,
                       [](const CodePointRange& r, char32_t x) { return r.last < x; });
  return found != ranges.end() && found->first <= c;
}

const CaseExpansion* find_expansion(char32_t c) {
  const auto table = case_expansions();
  const auto found =
      std::lower_bound(table.begin(), table.end(), c,
                       [](const CaseExpansion& entry, char32_t x) { return entry.code_point < x; });
  return found != table.end() && found->code_point == c ? &*found : nullptr;
}

void append_folded(std::string& out, char32_t c) {
  utf8proc_int32_t folded[8];
  int last_class = UTF8PROC_BOUNDCLASS_START;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8,
                                             UTF8PROC_CASEFOLD, &last_class);
  for (int i = 0; i < count && i < 8; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
}

}  // namespace

Character decode_at(std::string_view text, size_t offset) {
  const bool whole =
      first_utf8_sequence(text.substr(offset)).kind == Utf8Sequence::Kind::kCharacter;
  return whole ? character_at(text, offset) : Character{kReplacement, 1};
}

bool is_character(int64_t code) {
  return code >= 0 && code <= 0x10FFFF && (code < 0xD800 || code >= 0xE000);
}

size_t code_point_count(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += decode_at(text, i).size) ++count;
  return count;
}

size_t byte_offset(std::string_view text, size_t code_point_index) {
  size_t offset = 0;
  for (; code_point_index > 0 && offset < text.size(); --code_point_index) {
    offset += decode_at(text, offset).size;
  }
  return offset;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
         k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || in_table(other_digits(), c); }
bool is_numeric(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO ||
         in_table(other_numerics(), c);
}
bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || in_table(other_lowercase(), c);
}
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || in_table(other_uppercase(), c);
}
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_in_case(std::string_view text, bool (*is_wanted)(char32_t)) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    const Character c = decode_at(text, i);
    if (is_cased(c.code_point)) {
      if (!is_wanted(c.code_point)) return false;
      any = true;
    }
    i += c.size;
  }
  return any;
}

void append_in_case(std::string& out, char32_t c, Case to) {
  const auto code_point = static_cast<utf8proc_int32_t>(c);
  if (to == Case::kFold) return append_folded(out, c);
  if (to == Case::kLower) {
    if (c == 0x130) return void(out += "i\xCC\x87");  // the one lower form of two characters
    return append_utf8(out, static_cast<char32_t>(utf8proc_tolower(code_point)));
  }
  if (const CaseExpansion* expansion = find_expansion(c)) {
    out += to == Case::kUpper ? expansion->upper : expansion->title;
    return;
  }
  const auto mapped =
      to == Case::kUpper ? utf8proc_toupper(code_point) : utf8proc_totitle(code_point);
  append_utf8(out, static_cast<char32_t>(mapped));
}

}  // namespace espalier::text::jinja
