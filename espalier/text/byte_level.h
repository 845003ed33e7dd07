// The GPT-2 byte alphabet: every byte as a printable character, so that byte-level BPE can work on
// text. Constant tables; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier::text {

// The character (as UTF-8, one or two bytes) that stands for a byte.
std::string_view byte_level_character(unsigned char byte);
// The byte that a character stands for.
std::optional<unsigned char> byte_level_byte(char32_t character);
// The bytes behind a token; nothing where a character is outside the alphabet. `token` is valid
// UTF-8.
std::optional<std::string> byte_level_bytes(std::string_view token);

}  // namespace espalier::text
