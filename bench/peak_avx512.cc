// Instructions are written as assembly: 24 sums stay in registers, which g++ 12 does not manage with
// intrinsics, and nothing can be left out.
#include <immintrin.h>

#include "bench/peak.h"
#include "bench/random_operands.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::bench {
namespace {

using units::cpu::unrolled;
constexpr int kSums = 24, kOperands = 4;

// Functions of their own: clang 14 does not capture what only assembly in a generic lambda names.
[[gnu::always_inline]] inline void dot(__m512i& sum, __m512i a, __m512i b) {
  asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

[[gnu::always_inline]] inline void multiply_add(__m512& sum, __m512 a, __m512 b) {
  asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

}  // namespace

void run_vnni(int64_t passes) {
  alignas(64) uint8_t random[2 * kOperands * 64];
  fill_random(random, sizeof(random), 1);
  __m512i sums[kSums], a[kOperands], b[kOperands];
  unrolled<kSums>([&](auto i) { sums[i] = _mm512_setzero_si512(); });
  unrolled<kOperands>([&](auto i) {
    a[i] = _mm512_load_si512(random + i * 64);
    b[i] = _mm512_load_si512(random + (kOperands + i) * 64);
  });
  for (int64_t pass = 0; pass < passes; ++pass) {
    unrolled<kSums>([&](auto i) { dot(sums[i], a[i % kOperands], b[i / kOperands % kOperands]); });
  }
}

void run_zmm_floats(int64_t passes) {
  alignas(64) float random[2 * kOperands * 16];
  fill_random_floats(random, sizeof(random) / sizeof(float), 1);
  __m512 sums[kSums], a[kOperands], b[kOperands];
  unrolled<kSums>([&](auto i) { sums[i] = _mm512_setzero_ps(); });
  unrolled<kOperands>([&](auto i) {
    a[i] = _mm512_load_ps(random + i * 16);
    b[i] = _mm512_load_ps(random + (kOperands + i) * 16);
  });
  for (int64_t pass = 0; pass < passes; ++pass) {
    unrolled<kSums>(
        [&](auto i) { multiply_add(sums[i], a[i % kOperands], b[i / kOperands % kOperands]); });
  }
}

}  // namespace espalier::bench
