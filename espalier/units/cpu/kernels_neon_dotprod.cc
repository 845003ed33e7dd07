// The NEON kernel set for CPUs with dot products of bytes (FEAT_DotProd): sdot, 4 k of 4 outputs an instruction.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/linear_rows.h"
#include "espalier/units/cpu/vec16_neon.h"

namespace espalier::units::cpu {
namespace {

struct Dotprod {
  using Vector = Vec16Neon<Dotprod>;
  using Store = StorePlanes;
  static constexpr bool kPlanes = true, kSignedBytes = true;  // both factors of sdot have signs
  template <int kPlanesOf>
  static constexpr int kMaxRows = 4 / kPlanesOf;  // 16 sums, 4 of activations, 8 of weights
  template <int kRows, int kPlanesOf>
  class Sums;
};

template <int kRows, int kPlanesOf>
class Dotprod::Sums {
 public:
  using Values = PlaneRows<kRows, kPlanesOf>;

  Sums() {
    for (int32x4_t& sum : sums_) sum = vdupq_n_s32(0);
  }

  template <bool kNibbles>
  [[gnu::always_inline]] inline void add_pair(const std::byte* quants, const Values& values,
                                              int64_t k) {
    int8x8_t a[Values::kCount];
    unrolled<Values::kCount>([&](auto row) ESPALIER_INLINE {
      a[row] = vld1_s8(reinterpret_cast<const int8_t*>(values.at[row] + k));
    });
    unrolled<4>([&](auto part) ESPALIER_INLINE {
      int8x16_t even, odd;
      const uint8x16_t line = load(quants + part * kPartBytes);
      if constexpr (kNibbles) {
        even = vreinterpretq_s8_u8(vandq_u8(line, vdupq_n_u8(0xf)));
        odd = vreinterpretq_s8_u8(vshrq_n_u8(line, 4));
      } else {
        even = less_128(line);
        odd = less_128(load(quants + (4 + part) * kPartBytes));
      }
      unrolled<Values::kCount>([&](auto row) ESPALIER_INLINE {
        int32x4_t& sum = sums_[row * 4 + part];
        sum = vdotq_lane_s32(vdotq_lane_s32(sum, even, a[row], 0), odd, a[row], 1);
      });
    });
  }

  template <int kRow>
  [[gnu::always_inline]] inline Vector finish(int32_t correction) const {
    Vector result;
    unrolled<4>([&](auto part) ESPALIER_INLINE {
      int32x4_t sum = sums_[kRow * kPlanesOf * 4 + part];
      if constexpr (kPlanesOf == 2) {
        sum = vaddq_s32(vshlq_n_s32(sum, 8), sums_[(kRow * 2 + 1) * 4 + part]);
      }
      result.part[part] = vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(correction)));
    });
    return result;
  }

 private:
  static constexpr int64_t kPartBytes = 16;  // of a step: 4 outputs of 4 k

  static uint8x16_t load(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }
  // q of the bytes q + 128.
  static int8x16_t less_128(uint8x16_t bytes) {
    return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
  }

  int32x4_t sums_[Values::kCount * 4];
};

}  // namespace

constinit const KernelSet kNeonDotprodKernels =
    kernel_set_of<Dotprod>("dotprod", cpu_has_neon_dotprod);

}  // namespace espalier::units::cpu
