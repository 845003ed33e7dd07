// Sums, operands and what vpmaddwd gives before it is added fill the 16 registers; as assembly, so
// that they stay there.
#include <immintrin.h>

#include "bench/peak.h"
#include "bench/random_operands.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::bench {
namespace {

using units::cpu::unrolled;
constexpr int kPairSums = 8, kFloatSums = 12, kOperands = 2;

}  // namespace

void run_ymm_pairs(int64_t passes) {
  alignas(32) uint8_t random[2 * kOperands * 32];
  fill_random(random, sizeof(random), 1);
  __m256i sums[kPairSums], a[kOperands], b[kOperands];
  unrolled<kPairSums>([&](auto i) { sums[i] = _mm256_setzero_si256(); });
  unrolled<kOperands>([&](auto i) {
    a[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(random + i * 32));
    b[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(random + (kOperands + i) * 32));
  });
  for (int64_t pass = 0; pass < passes; ++pass) {
    unrolled<kPairSums>([&](auto i) {
      __m256i products;
      asm volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                   : "+x"(sums[i]), "=&x"(products)
                   : "x"(a[i % kOperands]), "x"(b[i / kOperands % kOperands]));
    });
  }
}

void run_ymm_floats(int64_t passes) {
  alignas(32) float random[2 * kOperands * 8];
  fill_random_floats(random, sizeof(random) / sizeof(float), 1);
  __m256 sums[kFloatSums], a[kOperands], b[kOperands];
  unrolled<kFloatSums>([&](auto i) { sums[i] = _mm256_setzero_ps(); });
  unrolled<kOperands>([&](auto i) {
    a[i] = _mm256_load_ps(random + i * 8);
    b[i] = _mm256_load_ps(random + (kOperands + i) * 8);
  });
  for (int64_t pass = 0; pass < passes; ++pass) {
    unrolled<kFloatSums>([&](auto i) {
      asm volatile("vfmadd231ps %2, %1, %0"
                   : "+x"(sums[i])
                   : "x"(a[i % kOperands]), "x"(b[i / kOperands % kOperands]));
    });
  }
}

}  // namespace espalier::bench
