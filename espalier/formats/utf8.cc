#include "espalier/formats/utf8.h"

#include <cstddef>
#include <cstdint>

namespace espalier::formats {
namespace {

// Bytes of a sequence by its first byte; 0 where none begins with it.
size_t sequence_bytes(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;  // a continuation, or an overlong form
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto lead = static_cast<uint8_t>(text[0]);
    const size_t length = sequence_bytes(lead);
    if (length == 0 || length > text.size()) return false;
    uint32_t code = lead & (0xff >> length);
    for (size_t i = 1; i < length; ++i) {
      const auto next = static_cast<uint8_t>(text[i]);
      if ((next & 0xc0) != 0x80) return false;
      code = code << 6 | (next & 0x3f);
    }
    if (length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) return false;
    if (length == 4 && (code < 0x10000 || code > 0x10ffff)) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace espalier::formats
