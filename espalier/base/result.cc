#include "espalier/base/result.h"

#include <utility>

namespace espalier {

std::string Error::message() const {
  std::string text = what;
  if (!expected.empty()) text += ": expected " + expected;
  if (!actual.empty()) text += (expected.empty() ? ": got " : ", got ") + actual;
  if (!fix.empty()) text += ". " + fix;
  return text;
}

Error Error::with_context(const std::string& context) const {
  Error error = *this;
  if (what.starts_with(context + ": ")) return error;  // a name is said once
  error.what = context + ": " + what;
  return error;
}

Error out_of_memory_error(std::string what, std::string expected, std::string fix) {
  return Error{.what = std::move(what),
               .expected = std::move(expected),
               .actual = "an allocation failed",
               .fix = std::move(fix)};
}

}  // namespace espalier
