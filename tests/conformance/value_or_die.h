// value_or_die: the value of a Result in tests, where an error is the end of the test program.
#pragma once

#include <utility>

#include "espalier/base/check.h"
#include "espalier/base/result.h"

namespace espalier::conformance {

template <typename T>
T value_or_die(Result<T> result) {
  if (!result.ok()) check_failed(__FILE__, __LINE__, result.error().message());
  return std::move(result).value();
}

}  // namespace espalier::conformance
