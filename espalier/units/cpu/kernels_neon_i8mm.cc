// The NEON kernel set for CPUs with matrix products of bytes (FEAT_I8MM): usmmla, 8 k of 2 outputs and 2 rows an
// instruction, of unsigned weights and signed activations.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/vec16_neon.h"

namespace espalier::units::cpu {
namespace {

// A pair is what usmmla takes: 8 k of both planes of a row, which the store puts side by side; or 8 k of two rows.
struct StorePairs {
  static void store(std::byte* values, const ActivationLayout& layout, int64_t first, int64_t count,
                    const int32_t* integers) {
    if (layout.planes == 1) return StorePlanes::store(values, layout, first, count, integers);
    auto* out = reinterpret_cast<int8_t*>(values) + 2 * first;
    for (int64_t k = 0; k < count; k += kPairElements, out += 2 * kPairElements) {
      for (int64_t i = 0; i < kPairElements; ++i) {
        out[i] = static_cast<int8_t>((integers[k + i] + 128) >> 8);
        out[kPairElements + i] = static_cast<int8_t>(integers[k + i] & 0xff);
      }
    }
  }
};

template <int kRows, int kPlanes>
struct PairRows {
  static constexpr int kCount = kPlanes == 2 ? kRows : (kRows + 1) / 2;
  const int8_t* row[kRows];

  PairRows(const ActivationLayout& x, int64_t first_row) {
    for (int r = 0; r < kRows; ++r)
      row[r] = reinterpret_cast<const int8_t*>(x.records + (first_row + r) * x.record_bytes);
  }
  template <int kPair>
  [[gnu::always_inline]] inline int8x16_t load(int64_t k) const {
    if constexpr (kPlanes == 2) return vld1q_s8(row[kPair] + 2 * k);
    constexpr int kFirst = 2 * kPair % kRows;
    constexpr int kSecond = kFirst + 1 < kRows ? kFirst + 1 : kFirst;  // an odd row is its own pair
    return vcombine_s8(vld1_s8(row[kFirst] + k), vld1_s8(row[kSecond] + k));
  }
};

struct I8mm {
  using Vector = Vec16Neon<I8mm>;
  using Store = StorePairs;
  static constexpr bool kPlanes = true, kSignedBytes = false;
  template <int kPlanesOf>
  static constexpr int kMaxRows = 6 / kPlanesOf;  // 24 sums, 3 of activations, 4 of weights
  template <int kRows, int kPlanesOf>
  class Sums;
};

// Sums of a pair and of outputs 2i and 2i + 1: first of the first, second of the first, first of the second, ...
template <int kRows, int kPlanesOf>
class I8mm::Sums {
 public:
  using Values = PairRows<kRows, kPlanesOf>;

  Sums() {
    for (int32x4_t& sum : sums_) sum = vdupq_n_s32(0);
  }

  template <bool kNibbles>
  [[gnu::always_inline]] inline void add_pair(const std::byte* quants, const Values& values,
                                              int64_t k) {
    int8x16_t a[Values::kCount];
    unrolled<Values::kCount>([&](auto pair)
                                 ESPALIER_INLINE { a[pair] = values.template load<pair>(k); });
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
      unrolled<Values::kCount>([&](auto pair) ESPALIER_INLINE {
        int32x4_t* sums = sums_ + pair * 8 + part * 2;
        sums[0] = vusmmlaq_s32(sums[0], low, a[pair]);
        sums[1] = vusmmlaq_s32(sums[1], high, a[pair]);
      });
    });
  }

  template <int kRow>
  [[gnu::always_inline]] inline Vector finish(int32_t correction) const {
    constexpr int kPair = kPlanesOf == 2 ? kRow : kRow / 2;
    Vector result;
    unrolled<4>([&](auto part) ESPALIER_INLINE {
      const int32x4_t low = sums_[kPair * 8 + part * 2], high = sums_[kPair * 8 + part * 2 + 1];
      const int32x4_t first = vuzp1q_s32(low, high), second = vuzp2q_s32(low, high);
      const int32x4_t sum = kPlanesOf == 2  ? vaddq_s32(vshlq_n_s32(first, 8), second)
                            : kRow % 2 == 0 ? first
                                            : second;
      result.part[part] = vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(correction)));
    });
    return result;
  }

 private:
  static constexpr int64_t kPartBytes = 16;  // of a step: 4 outputs of 4 k

  static uint8x16_t load(const std::byte* p) {
    return vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  }

  int32x4_t sums_[Values::kCount * 8];
};

}  // namespace

constinit const KernelSet kNeonI8mmKernels = kernel_set_of<I8mm>("i8mm", cpu_has_neon_i8mm);

}  // namespace espalier::units::cpu
