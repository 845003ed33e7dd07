// CHECK: our own bugs. Prints the expression, both values and the place, then aborts; never used
// for what a file, a request, a device or memory can cause (that is base/result.h). Callable from
// any thread. Not compiled out in release builds: every CHECK is outside inner loops.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace espalier {

[[noreturn]] void check_failed(const char* file, int line, std::string_view message);

namespace internal {

template <typename A, typename B>
[[noreturn]] void check_compare_failed(const char* file, int line, const char* expression,
                                       const A& a, const B& b) {
  check_failed(file, line, fmt::format("CHECK({}) failed: {} against {}", expression, a, b));
}

}  // namespace internal
}  // namespace espalier

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition))                                                               \
      ::espalier::check_failed(__FILE__, __LINE__, "CHECK(" #condition ") failed"); \
  } while (false)

#define ESPALIER_CHECK_OP(a, op, b)                                                               \
  do {                                                                                            \
    const auto& check_a_ = (a);                                                                   \
    const auto& check_b_ = (b);                                                                   \
    if (!(check_a_ op check_b_))                                                                  \
      ::espalier::internal::check_compare_failed(__FILE__, __LINE__, #a " " #op " " #b, check_a_, \
                                                 check_b_);                                       \
  } while (false)

#define CHECK_EQ(a, b) ESPALIER_CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) ESPALIER_CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) ESPALIER_CHECK_OP(a, <, b)
#define CHECK_LE(a, b) ESPALIER_CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) ESPALIER_CHECK_OP(a, >, b)
#define CHECK_GE(a, b) ESPALIER_CHECK_OP(a, >=, b)
