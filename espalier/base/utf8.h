// UTF-8: telling valid from broken, reading and writing characters. Strict, as Unicode defines it:
// no overlong forms, no surrogates, nothing above U+10FFFF. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// The first sequence of a text that need not be valid: a whole character, the beginning of one that
// the text cuts off, or a maximal ill-formed part (which decoders replace by one U+FFFD).
struct Utf8Sequence {
  enum class Kind { kCharacter, kCutOff, kInvalid };
  Kind kind = Kind::kInvalid;
  size_t size = 0;  // bytes, at least 1
};
Utf8Sequence first_utf8_sequence(std::string_view text);  // `text` is not empty

// Offset of the first byte that is not valid UTF-8.
std::optional<size_t> invalid_utf8_at(std::string_view text);
// Every ill-formed part becomes U+FFFD, as Rust's from_utf8_lossy does it.
std::string replace_invalid_utf8(std::string_view text);
// One line that a terminal can show whatever the text is: control characters and ill-formed bytes
// are spelled out ("\n", "\x1B"), everything else stays.
std::string printable(std::string_view text);

struct Character {
  char32_t code_point = 0;
  size_t size = 0;  // bytes
};
// Of valid UTF-8: the character that begins at `offset`.
Character character_at(std::string_view text, size_t offset);
// Of valid UTF-8: the character that ends just before `end`, which is not 0.
Character character_before(std::string_view text, size_t end);
void append_utf8(std::string& text, char32_t code_point);

}  // namespace espalier
