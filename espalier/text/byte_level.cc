#include "espalier/text/byte_level.h"

#include <array>

#include "espalier/base/utf8.h"

namespace espalier::text {
namespace {

// Printable bytes of Latin-1 stand for themselves; the others follow from U+0100 on, in order.
struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, 512> bytes;

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = printable ? static_cast<char32_t>(byte) : next++;
      append_utf8(characters[static_cast<size_t>(byte)], character);
      bytes[character] = byte;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kAlphabet;
  return kAlphabet;
}

}  // namespace

std::string_view byte_level_character(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<unsigned char> byte_level_byte(char32_t character) {
  const auto& bytes = alphabet().bytes;
  if (character >= bytes.size() || bytes[character] < 0) return std::nullopt;
  return static_cast<unsigned char>(bytes[character]);
}

std::optional<std::string> byte_level_bytes(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size();) {
    const Character c = character_at(token, i);
    const std::optional<unsigned char> byte = byte_level_byte(c.code_point);
    if (!byte) return std::nullopt;
    out += static_cast<char>(*byte);
    i += c.size;
  }
  return out;
}

}  // namespace espalier::text
