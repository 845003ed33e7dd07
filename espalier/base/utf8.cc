#include "espalier/base/utf8.h"

#include <fmt/format.h>

namespace espalier {
namespace {

unsigned char byte_at(std::string_view text, size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// Bytes of the character that begins with `lead`; 0 where nothing can begin with it.
size_t sequence_size(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
bool second_byte_fits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0 && second <= 0xBF;
    case 0xED:
      return second >= 0x80 && second <= 0x9F;
    case 0xF0:
      return second >= 0x90 && second <= 0xBF;
    case 0xF4:
      return second >= 0x80 && second <= 0x8F;
    default:
      return second >= 0x80 && second <= 0xBF;
  }
}

}  // namespace

Utf8Sequence first_utf8_sequence(std::string_view text) {
  using Kind = Utf8Sequence::Kind;
  const unsigned char lead = byte_at(text, 0);
  const size_t size = sequence_size(lead);
  if (size == 0) return {Kind::kInvalid, 1};
  for (size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {Kind::kCutOff, i};
    const unsigned char byte = byte_at(text, i);
    const bool fits = i == 1 ? second_byte_fits(lead, byte) : (byte & 0xC0) == 0x80;
    if (!fits) return {Kind::kInvalid, i};
  }
  return {Kind::kCharacter, size};
}

std::optional<size_t> invalid_utf8_at(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Utf8Sequence sequence = first_utf8_sequence(text.substr(i));
    if (sequence.kind != Utf8Sequence::Kind::kCharacter) return i;
    i += sequence.size;
  }
  return std::nullopt;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Sequence sequence = first_utf8_sequence(text);
    const bool whole = sequence.kind == Utf8Sequence::Kind::kCharacter;
    out += whole ? text.substr(0, sequence.size) : kReplacementCharacter;
    text.remove_prefix(sequence.size);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Sequence sequence = first_utf8_sequence(text);
    const std::string_view bytes = text.substr(0, sequence.size);
    text.remove_prefix(sequence.size);
    const bool whole = sequence.kind == Utf8Sequence::Kind::kCharacter;
    // C0, DEL and C1, which terminals take for commands.
    const char32_t c = whole ? character_at(bytes, 0).code_point : 0;
    if (c >= 0x20 && !(c >= 0x7F && c < 0xA0)) {
      out += bytes;
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else {
      for (const char byte : bytes) out += fmt::format("\\x{:02X}", static_cast<uint8_t>(byte));
    }
  }
  return out;
}

Character character_at(std::string_view text, size_t offset) {
  const unsigned char lead = byte_at(text, offset);
  if (lead < 0x80) return {lead, 1};
  const size_t size = sequence_size(lead);
  char32_t code_point = lead & (0xFF >> (size + 1));
  for (size_t i = 1; i < size; ++i)
    code_point = code_point << 6 | (byte_at(text, offset + i) & 0x3F);
  return {code_point, size};
}

Character character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (byte_at(text, begin) & 0xC0) == 0x80) --begin;
  return character_at(text, begin);
}

void append_utf8(std::string& text, char32_t c) {
  const auto continuation = [&](int shift) {
    text += static_cast<char>(0x80 | (c >> shift & 0x3F));
  };
  if (c < 0x80) {
    text += static_cast<char>(c);
  } else if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
    continuation(0);
  } else if (c < 0x10000) {
    text += static_cast<char>(0xE0 | c >> 12);
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xF0 | c >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace espalier
