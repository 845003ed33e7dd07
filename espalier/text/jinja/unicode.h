// What Python's str knows about characters: code points of UTF-8 text, their classes and their
// case, on top of utf8proc. Bytes that are not valid UTF-8 count as one character U+FFFD each, so
// every function is total. Pure functions; safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/base/utf8.h"

namespace espalier::text::jinja {

Character decode_at(std::string_view text, size_t offset);  // offset < text.size()
bool is_character(int64_t code);                            // a code point that UTF-8 can hold

size_t code_point_count(std::string_view text);
// Byte offset of the character with this index; text.size() where the text is shorter.
size_t byte_offset(std::string_view text, size_t code_point_index);

// Classes as str.isspace(), isalpha(), isdecimal(), ... define them for one character.
bool is_space(char32_t c);
bool is_line_break(char32_t c);  // where str.splitlines() breaks
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alphanumeric(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_printable(char32_t c);

// At least one cased character, and none that is not `is_wanted` (is_lower, is_upper).
bool is_in_case(std::string_view text, bool (*is_wanted)(char32_t));

enum class Case { kLower, kUpper, kTitle, kFold };
// One character can become several ("ß" upper is "SS"). The final sigma rule is the caller's.
void append_in_case(std::string& out, char32_t c, Case to);

}  // namespace espalier::text::jinja
