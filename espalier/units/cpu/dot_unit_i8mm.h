// I8mmDots: the unit of linear_rows.h with the matrix products of bytes of FEAT_I8MM: usmmla, 8 k of 2 outputs and 2 rows
// an instruction, of unsigned weights and signed activations. Both planes of a row are two rows like any other.
//
// Set is the tag of Vec16Neon.
#pragma once

#include "espalier/units/cpu/linear_quantize.h"
#include "espalier/units/cpu/linear_rows.h"
#include "espalier/units/cpu/vec16_neon.h"

namespace espalier::units::cpu {
namespace {

// Sums of a pair of rows and of outputs 2i and 2i + 1: first row of the first output, second row of the first output, first
// row of the second output, ... The last row of an odd number is its own pair.
template <class Set, int kRows, int kPlanes>
class I8mmSums {
 public:
  using Values = PlaneRows<kRows, kPlanes>;

  I8mmSums() {
    for (int32x4_t& sum : sums_) sum = vdupq_n_s32(0);
  }

  template <bool kNibbles>
  [[gnu::always_inline]] inline void add_pair(const std::byte* quants, const Values& values,
                                              int64_t k) {
    int8x16_t a[kPairs];
    unrolled<kPairs>([&](auto pair) ESPALIER_INLINE {
      constexpr int kFirst = 2 * pair, kSecond = kFirst + 1 < Values::kCount ? kFirst + 1 : kFirst;
      a[pair] = vcombine_s8(eight(values.at[kFirst] + k), eight(values.at[kSecond] + k));
    });
    unrolled<4>([&](auto part) ESPALIER_INLINE {
      uint8x16_t even = load(quants + part * kPartBytes), odd;
      if constexpr (kNibbles) {
        odd = vshrq_n_u8(even, 4);
        even = vandq_u8(even, vdupq_n_u8(0xf));
      } else {
        odd = load(quants + (4 + part) * kPartBytes);
      }
      // Steps hold 4 k of an output; usmmla wants 8 of it side by side.
      const uint32x4_t first = vreinterpretq_u32_u8(even), second = vreinterpretq_u32_u8(odd);
      const uint8x16_t low = vreinterpretq_u8_u32(vzip1q_u32(first, second));
      const uint8x16_t high = vreinterpretq_u8_u32(vzip2q_u32(first, second));
      unrolled<kPairs>([&](auto pair) ESPALIER_INLINE {
        int32x4_t* sums = sums_ + pair * 8 + part * 2;
        sums[0] = vusmmlaq_s32(sums[0], low, a[pair]);
        sums[1] = vusmmlaq_s32(sums[1], high, a[pair]);
      });
    });
  }

  template <int kRow>
  [[gnu::always_inline]] inline Vec16Neon<Set> finish(int32_t correction) const {
    Vec16Neon<Set> result;
    unrolled<4>([&](auto part) ESPALIER_INLINE {
      int32x4_t sum = plane_sum<kRow * kPlanes, part>();
      if constexpr (kPlanes == 2)
        sum = vaddq_s32(vshlq_n_s32(sum, 8), plane_sum<kRow * 2 + 1, part>());
      result.part[part] = vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(correction)));
    });
    return result;
  }

 private:
  static constexpr int kPairs = (Values::kCount + 1) / 2;
  static constexpr int64_t kPartBytes = 16;  // of a step: 4 outputs of 4 k

  static int8x8_t eight(const std::byte* p) { return vld1_s8(reinterpret_cast<const int8_t*>(p)); }
  static uint8x16_t load(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }
  template <int kPlaneRow, int kPart>
  [[gnu::always_inline]] inline int32x4_t plane_sum() const {
    const int32x4_t* sums = sums_ + kPlaneRow / 2 * 8 + kPart * 2;
    return kPlaneRow % 2 == 0 ? vuzp1q_s32(sums[0], sums[1]) : vuzp2q_s32(sums[0], sums[1]);
  }

  int32x4_t sums_[kPairs * 8];
};

template <class Set>
struct I8mmDots {
  using Vector = Vec16Neon<Set>;
  using Store = StorePlanes;
  static constexpr bool kPlanes = true, kSignedBytes = false;
  template <int kPlanesOf>
  static constexpr int kMaxRows = 6 / kPlanesOf;  // 24 sums, 3 of activations, 4 of weights
  template <int kRows, int kPlanesOf>
  using Sums = I8mmSums<Set, kRows, kPlanesOf>;
};

}  // namespace
}  // namespace espalier::units::cpu
