// The AVX2 kernel set: 16-bit products (vpmaddwd). Built with ISA flags: no standard containers, no inline functions
// shared with other files.
#include "espalier/units/cpu/dot_unit_ymm.h"

namespace espalier::units::cpu {
namespace {

// int16 in the order k0 k2 k1 k3 of each step, as bytes become 16-bit numbers cheapest: the even ones by a mask, the odd
// ones by a shift.
struct StoreEvenOdd {
  static void store(std::byte* values, const ActivationLayout& layout, int64_t first, int64_t count,
                    const int32_t* integers) {
    StoreInt16::store(values, layout, first, count, integers);
    auto* out = reinterpret_cast<int16_t*>(values) + first;
    for (int64_t k = 0; k < count; k += kStepElements) {
      out[k + 1] = static_cast<int16_t>(integers[k + 2]);
      out[k + 2] = static_cast<int16_t>(integers[k + 1]);
    }
  }
};

struct PairProducts {
  using Store = StoreEvenOdd;
  struct Weights {
    __m256i even, odd;
  };
  using Activations = Weights;
  static constexpr bool kPlanes = false;
  static constexpr int kMaxFactors = 4;
  static constexpr int64_t kElementBytes = 2;

  static Weights bytes(__m256i line) {
    return {_mm256_and_si256(line, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(line, 8)};
  }
  static Weights low_nibbles(__m256i line) {
    const __m256i low = _mm256_set1_epi16(0xf);
    return {_mm256_and_si256(line, low), _mm256_and_si256(_mm256_srli_epi16(line, 8), low)};
  }
  static Weights high_nibbles(__m256i line) {
    const __m256i low = _mm256_set1_epi16(0xf);
    return {_mm256_and_si256(_mm256_srli_epi16(line, 4), low), _mm256_srli_epi16(line, 12)};
  }
  static Activations broadcast(const std::byte* p) {
    const auto* pairs =
        reinterpret_cast<const float*>(p);  // floats, else g++ loads both and shifts
    return {_mm256_castps_si256(_mm256_broadcast_ss(pairs)),
            _mm256_castps_si256(_mm256_broadcast_ss(pairs + 1))};
  }
  static __m256i add(__m256i sums, Weights w, Activations a) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(w.even, a.even));
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(w.odd, a.odd));
    asm("" : "+x"(sums));  // else g++ makes all products first and spills them: 41, not 71 Gmac/s
    return sums;
  }
};

}  // namespace

constinit const KernelSet kAvx2Kernels = kernel_set_of<YmmDots<PairProducts>>("avx2", cpu_has_avx2);

}  // namespace espalier::units::cpu
