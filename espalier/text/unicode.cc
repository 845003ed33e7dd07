#include "espalier/text/unicode.h"

#include <algorithm>
#include <array>
#include <span>

#include "espalier/base/utf8.h"
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

// Blocks of 256 code points that have stand-ins: one look-up for all other text.
std::array<bool, 0x1100> blocks_with_stand_ins() {
  std::array<bool, 0x1100> blocks{};
  for (const auto& row : unicode_tables::kRegexAlias) {
    for (char32_t block = row.first >> 8; block <= row.last >> 8; ++block) blocks[block] = true;
  }
  return blocks;
}

}  // namespace

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
