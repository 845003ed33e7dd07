// unrolled: a loop whose index is a constant in its body. For kernels alone: internal linkage.
#pragma once

#include <type_traits>

#define ESPALIER_INLINE __attribute__((always_inline))

namespace espalier::units::cpu {
namespace {

// function(0), ..., function(kCount - 1) with constants as arguments, inlined: g++ keeps an array
// in registers only where its indices are constants early; unrolling a loop comes too late and
// leaves a store for every sum.
template <int kCount, int kFirst = 0, class Function>
[[gnu::always_inline]] inline void unrolled(const Function& function) {
  if constexpr (kFirst < kCount) {
    function(std::integral_constant<int, kFirst>());
    unrolled<kCount, kFirst + 1>(function);
  }
}

}  // namespace
}  // namespace espalier::units::cpu
