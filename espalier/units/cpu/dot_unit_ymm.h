// YmmDots: the units of linear_rows.h in 256-bit registers. The 16 outputs of a step are two registers of int32 sums.
//
// Products is the instruction:
//   Store, kPlanes          as in linear_rows.h
//   kMaxFactors             rows times planes of a tile: the sums, one step of weights and one step of activations fill 16 registers
//   kElementBytes           of an activation
//   Weights, Activations    4 k of 8 outputs; 4 k of one row, the same for all outputs
//   bytes(line)             the weights of a line of bytes, or of its low or high nibbles
//   low_nibbles(line), high_nibbles(line)
//   broadcast(p)            the activations at p
//   add(sums, w, a)         sums + w * a, 8 outputs
#pragma once

#include "espalier/units/cpu/linear_quantize.h"
#include "espalier/units/cpu/linear_rows.h"
#include "espalier/units/cpu/vec16_ymm.h"

namespace espalier::units::cpu {
namespace {

template <class Products, int kRows, int kPlanes>
class YmmSums {
 public:
  using Values = PlaneRows<kRows, kPlanes>;

  YmmSums() {
    unrolled<kCount>([&](auto i) ESPALIER_INLINE { sums_[i] = _mm256_setzero_si256(); });
  }

  template <bool kNibbles>
  [[gnu::always_inline]] inline void add_pair(const std::byte* quants, const Values& values,
                                              int64_t k) {
    Weights even[2], odd[2];
    unrolled<2>([&](auto half) ESPALIER_INLINE {
      const __m256i line = load(quants + half * kHalfBytes);
      if constexpr (kNibbles) {
        even[half] = Products::low_nibbles(line);
        odd[half] = Products::high_nibbles(line);
      } else {
        even[half] = Products::bytes(line);
        odd[half] = Products::bytes(load(quants + (2 + half) * kHalfBytes));
      }
    });
    add_step<0>(even, values, k);
    add_step<kSplit - 1>(odd, values, k + kStepElements);
  }

  template <int kRow>
  [[gnu::always_inline]] inline Vec16Ymm<Products> finish(int32_t correction) const {
    const __m256i less = _mm256_set1_epi32(correction);
    const auto eight = [&](auto half) ESPALIER_INLINE {
      __m256i sum = factor_sum<kRow * kPlanes, half>();
      if constexpr (kPlanes == 2) {
        sum = _mm256_add_epi32(_mm256_slli_epi32(sum, 8), factor_sum<kRow * 2 + 1, half>());
      }
      return _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, less));
    };
    return {eight(std::integral_constant<int, 0>()), eight(std::integral_constant<int, 1>())};
  }

 private:
  using Weights = typename Products::Weights;
  static constexpr int kFactors = kRows * kPlanes;
  // A single row has too few sums to hide their latency: those of even and odd steps are kept apart.
  static constexpr int kSplit = kRows == 1 ? 2 : 1;
  static constexpr int kCount = kSplit * kFactors * 2;
  static constexpr int64_t kHalfBytes = kStepElements * kPanelOutputs / 2;

  static __m256i load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  template <int kSplitIndex>
  [[gnu::always_inline]] inline void add_step(const Weights* weights, const Values& values,
                                              int64_t k) {
    unrolled<kFactors>([&](auto factor) ESPALIER_INLINE {
      const auto a = Products::broadcast(values.at[factor] + k * Products::kElementBytes);
      unrolled<2>([&](auto half) ESPALIER_INLINE {
        __m256i& sum = sums_[(kSplitIndex * kFactors + factor) * 2 + half];
        sum = Products::add(sum, weights[half], a);
      });
    });
  }
  template <int kFactor, int kHalf>
  [[gnu::always_inline]] inline __m256i factor_sum() const {
    const __m256i sum = sums_[kFactor * 2 + kHalf];
    if constexpr (kSplit == 1) return sum;
    return _mm256_add_epi32(sum, sums_[(kFactors + kFactor) * 2 + kHalf]);
  }

  __m256i sums_[kCount];
};

template <class Products>
struct YmmDots {
  using Vector = Vec16Ymm<Products>;
  using Store = typename Products::Store;
  static constexpr bool kPlanes = Products::kPlanes, kSignedBytes = false;
  template <int kPlanesOf>
  static constexpr int kMaxRows = Products::kMaxFactors / kPlanesOf;
  template <int kRows, int kPlanesOf>
  using Sums = YmmSums<Products, kRows, kPlanesOf>;
};

// Products of instructions that multiply bytes: what is left to define is add(sums, bytes, bytes).
struct ByteProducts {
  using Store = StorePlanes;
  using Weights = __m256i;
  using Activations = __m256i;
  static constexpr bool kPlanes = true;
  static constexpr int kMaxFactors = 6;
  static constexpr int64_t kElementBytes = 1;

  static __m256i bytes(__m256i line) { return line; }
  static __m256i low_nibbles(__m256i line) { return _mm256_and_si256(line, _mm256_set1_epi8(0xf)); }
  static __m256i high_nibbles(__m256i line) { return low_nibbles(_mm256_srli_epi16(line, 4)); }
  static __m256i broadcast(const std::byte* p) {
    int32_t four;
    std::memcpy(&four, p, sizeof(four));
    return _mm256_set1_epi32(four);
  }
};

}  // namespace
}  // namespace espalier::units::cpu
