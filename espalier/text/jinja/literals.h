// Number and string literals of the template language. Pure functions over the normalised source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/text/jinja/source.h"

namespace espalier::text::jinja {

struct NumberLiteral {
  bool is_float = false;
  int64_t integer = 0;
  double real = 0;
  size_t length = 0;  // bytes
};
// The literal that begins with the digit at `offset`.
Result<NumberLiteral> scan_number(std::string_view source, Offset offset, bool may_be_float);

// The value of the string between its quotes, [begin, end), with Python's escapes.
Result<std::string> unescape_string(std::string_view source, Offset begin, Offset end);

}  // namespace espalier::text::jinja
