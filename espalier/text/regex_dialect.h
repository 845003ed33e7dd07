// Translates patterns from Oniguruma's dialect, which the `tokenizers` library speaks, into
// PCRE2's. They differ in what \s, \w, \b and POSIX classes contain, in nested classes and class
// intersections, in (?m), ^ and $, in options that run to the end of a group, and in intervals
// followed by + or ?. Pure function.
#pragma once

#include <string>
#include <string_view>

#include "espalier/base/result.h"

namespace espalier::text {

// An error names the construct that has no translation.
Result<std::string> pcre2_from_oniguruma(std::string_view pattern);

}  // namespace espalier::text
