// UTF-8 and the questions that tokenizers ask about characters. The answers are those of the
// `tokenizers` library (text/unicode_tables.h), not of whatever Unicode version a system library
// has. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::text {

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

struct Character {
  char32_t code_point = 0;
  size_t size = 0;  // bytes
};
// Of valid UTF-8: the character that begins at `offset`.
Character character_at(std::string_view text, size_t offset);
// Of valid UTF-8: the character that ends just before `end`, which is not 0.
Character character_before(std::string_view text, size_t end);
void append_utf8(std::string& text, char32_t code_point);

bool is_white_space(char32_t c);
bool is_numeric(char32_t c);          // Nd, Nl, No
bool is_word(char32_t c);             // \w of the regex crate
bool is_punctuation(char32_t c);      // category P, and the ASCII symbols
bool is_other(char32_t c);            // control characters and the like, dropped by BertNormalizer
bool is_mark_nonspacing(char32_t c);  // Mn
bool is_combining_mark(char32_t c);   // M
bool is_normalization_inert(char32_t c);  // newer than the library's normalisation tables
void append_lowercase(std::string& text, char32_t c);

// The character that stands for `c` before PCRE2, so that its version of Unicode does not matter:
// of the same category, script family and UTF-8 length. Mostly `c` itself.
char32_t regex_stand_in(char32_t c);

}  // namespace espalier::text
