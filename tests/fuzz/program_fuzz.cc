// Any text as a program: refused, or a program that prints as what it is read from again, and that
// is valid or not.
#include <cstdint>
#include <string_view>

#include "espalier/base/check.h"
#include "espalier/program/text.h"
#include "espalier/program/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace program = espalier::program;
  const auto parsed = program::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  const std::string text = program::print(*parsed);
  const auto again = program::parse(text);
  CHECK(again.ok());
  CHECK(program::print(*again) == text);  // not the programs: NaN is not NaN
  CHECK_EQ(program::validate(*parsed).ok(), program::validate(*again).ok());
  return 0;
}
