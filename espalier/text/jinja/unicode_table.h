// Tables behind unicode.h: the few hundred characters that utf8proc alone does not place as Python
// does. All are sorted by code point. Constant data.
#pragma once

#include <span>

namespace espalier::text::jinja {

struct CaseExpansion {
  char32_t code_point;
  const char* upper;  // UTF-8
  const char* title;
};
struct CodePointRange {
  char32_t first, last;  // both inclusive
};

std::span<const CaseExpansion>
case_expansions();  // characters whose upper or title form is longer than one
std::span<const CodePointRange> other_digits();     // isdigit() without category Nd
std::span<const CodePointRange> other_numerics();   // isnumeric() without category N*
std::span<const CodePointRange> other_lowercase();  // islower() without category Ll
std::span<const CodePointRange> other_uppercase();  // isupper() without category Lu

}  // namespace espalier::text::jinja
