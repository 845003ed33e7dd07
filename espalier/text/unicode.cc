#include "espalier/text/unicode.h"

#include <algorithm>
#include <array>

#include "espalier/text/unicode_tables.h"

namespace espalier::text {
namespace {

// The row whose range contains `c`, or nullptr.
template <typename Row>
const Row* find_row(std::span<const Row> rows, char32_t c) {
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), c,
                       [](char32_t value, const Row& row) { return value < row.first; });
  if (after == rows.begin()) return nullptr;
  const Row& row = *(after - 1);
  return c <= row.last ? &row : nullptr;
}

bool in_set(std::span<const unicode_tables::Range> ranges, char32_t c) {
  return find_row(ranges, c) != nullptr;
}

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

// Blocks of 256 code points that have stand-ins: one look-up for all other text.
std::array<bool, 0x1100> blocks_with_stand_ins() {
  std::array<bool, 0x1100> blocks{};
  for (const auto& row : unicode_tables::kRegexAlias) {
    for (char32_t block = row.first >> 8; block <= row.last >> 8; ++block) blocks[block] = true;
  }
  return blocks;
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

bool is_white_space(char32_t c) {  // White_Space has been the same since Unicode 6.3
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return in_set(unicode_tables::kNumeric, c);
}

bool is_word(char32_t c) { return in_set(unicode_tables::kWord, c); }
bool is_punctuation(char32_t c) { return in_set(unicode_tables::kPunctuation, c); }
bool is_other(char32_t c) { return in_set(unicode_tables::kOther, c); }
bool is_mark_nonspacing(char32_t c) { return in_set(unicode_tables::kMarkNonspacing, c); }
bool is_combining_mark(char32_t c) { return in_set(unicode_tables::kCombiningMark, c); }
bool is_normalization_inert(char32_t c) { return in_set(unicode_tables::kNormalizationInert, c); }

void append_lowercase(std::string& text, char32_t c) {
  if (c == 0x130) {  // the only character with a longer lower case: i and a dot above
    text += "i\xCC\x87";
    return;
  }
  const auto* row = find_row(unicode_tables::kLowercase, c);
  const bool has_lower_case = row != nullptr && (c - row->first) % row->step == 0;
  append_utf8(text, has_lower_case ? c + static_cast<char32_t>(row->distance) : c);
}

char32_t regex_stand_in(char32_t c) {
  static const std::array<bool, 0x1100> kBlocks = blocks_with_stand_ins();
  if (!kBlocks[c >> 8]) return c;
  const auto* row = find_row(unicode_tables::kRegexAlias, c);
  return row == nullptr ? c : row->stand_in;
}

}  // namespace espalier::text
