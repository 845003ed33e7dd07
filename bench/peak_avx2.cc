// Sums, operands and what vpmaddwd gives before it is added fill the 16 registers; as assembly, so
// that they stay there.
#include <immintrin.h>

#include "bench/peak.h"
#include "bench/random_operands.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::bench {
namespace {

using units::cpu::unrolled;
constexpr int kPairSums = 8, kDotSums = 12, kFloatSums = 12, kOperands = 2;

// Functions of their own: clang 14 does not capture what only assembly in a generic lambda names.
struct PairProducts {
  static constexpr int kSums = kPairSums;
  [[gnu::always_inline]] static void add(__m256i& sum, __m256i a, __m256i b) {
    __m256i products;
    asm volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                 : "+x"(sum), "=&x"(products)
                 : "x"(a), "x"(b));
  }
};
// The same instruction in the encodings of AVX-VNNI and of AVX-512: processors have one, or both.
struct VexDot {
  static constexpr int kSums = kDotSums;
  [[gnu::always_inline]] static void add(__m256i& sum, __m256i a, __m256i b) {
    asm volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
};
struct EvexDot {
  static constexpr int kSums = kDotSums;
  [[gnu::always_inline]] static void add(__m256i& sum, __m256i a, __m256i b) {
    asm volatile("%{evex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
};

[[gnu::always_inline]] inline void multiply_add(__m256& sum, __m256 a, __m256 b) {
  asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
}

template <class Product>
void run_bytes(int64_t passes) {
  alignas(32) uint8_t random[2 * kOperands * 32];
  fill_random(random, sizeof(random), 1);
  __m256i sums[Product::kSums], a[kOperands], b[kOperands];
  unrolled<Product::kSums>([&](auto i) { sums[i] = _mm256_setzero_si256(); });
  unrolled<kOperands>([&](auto i) {
    a[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(random + i * 32));
    b[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(random + (kOperands + i) * 32));
  });
  for (int64_t pass = 0; pass < passes; ++pass) {
    unrolled<Product::kSums>(
        [&](auto i) { Product::add(sums[i], a[i % kOperands], b[i / kOperands % kOperands]); });
  }
}

}  // namespace

void run_ymm_pairs(int64_t passes) { run_bytes<PairProducts>(passes); }

void run_ymm_vex_dots(int64_t passes) { run_bytes<VexDot>(passes); }

void run_ymm_evex_dots(int64_t passes) { run_bytes<EvexDot>(passes); }

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
    unrolled<kFloatSums>(
        [&](auto i) { multiply_add(sums[i], a[i % kOperands], b[i / kOperands % kOperands]); });
  }
}

}  // namespace espalier::bench
