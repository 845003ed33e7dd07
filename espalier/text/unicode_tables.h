// Unicode as the `tokenizers` library sees it, as sorted ranges of code points; unicode.h asks the
// questions. The library's parts follow different Unicode versions, so there is one table for each
// question, measured from the library itself by python/espalier_tools/golden/unicode_tables.py.
// Constant data.
#pragma once

#include <cstdint>
#include <span>

namespace espalier::text::unicode_tables {

struct Range {
  char32_t first, last;
};

// A character of the same general category, script family and UTF-8 length in every Unicode
// version.
struct Alias {
  char32_t first, last, stand_in;
};

// Every `step`-th code point from first to last has its lower case `distance` away.
struct Lowercase {
  char32_t first, last, step;
  int32_t distance;
};

extern const std::span<const Range> kNumeric, kWord, kPunctuation, kOther, kMarkNonspacing,
    kCombiningMark, kNormalizationInert;
extern const std::span<const Alias> kRegexAlias;
extern const std::span<const Lowercase> kLowercase;

}  // namespace espalier::text::unicode_tables
