// Vec16: the virtual vector that fp32 kernels are written for, as 16 plain floats. This is the
// definition; units/cpu/vec16_<registers>.h hold the same 16 lanes in registers and
// equal it bit for bit (denormals included; a NaN is a NaN, its payload is nobody's business).
// Kernels are templates over the vector type V, so their order of operations, and so their results,
// do not depend on the instruction set.
//
// VecN<1> serves scalar code that must agree with the kernels (base/vec_math.h). Integers only as
// far as they become fp32, in the sets that have tiles. Rule for code compiled with extra ISA flags:
// never use VecN there, the linker could keep that copy of it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "espalier/base/dtype.h"

namespace espalier {

// Adding it to |x| < 2^22 rounds x to the nearest integer, ties to even, and leaves it in the low
// bits.
inline constexpr float kRoundToInteger = 0x1.8p23f;

template <int N>
struct VecN {
  static constexpr int64_t kLanes = N;
  static constexpr int kSumRegisters = 5;  // vectors that sums may fill, beside operands
  float lane[N];

  static VecN broadcast(float x) {
    return make([&](int) { return x; });
  }
  static VecN zero() { return broadcast(0.0f); }
  static VecN load(const float* p) {
    return make([&](int i) { return p[i]; });
  }
  // The first `count` lanes from memory, 0 <= count <= N, the others 0; nothing else is read.
  static VecN load_partial(const float* p, int64_t count) {
    return make([&](int i) { return i < count ? p[i] : 0.0f; });
  }
  static VecN load_half(const uint16_t* p) {
    return make([&](int i) { return half_to_float(p[i]); });
  }
  static VecN load_half_partial(const uint16_t* p, int64_t count) {
    return make([&](int i) { return i < count ? half_to_float(p[i]) : 0.0f; });
  }
  static VecN load_bfloat16(const uint16_t* p) {
    return make([&](int i) { return std::bit_cast<float>(static_cast<uint32_t>(p[i]) << 16); });
  }
  static VecN broadcast_integer(int32_t x) { return broadcast(static_cast<float>(x)); }
  // Nearest fp32 of integers[lane] - less; wraps like int32.
  static VecN from_integers(const int32_t* integers, int32_t less) {
    return make([&](int i) {
      return static_cast<float>(
          static_cast<int32_t>(static_cast<uint32_t>(integers[i]) - static_cast<uint32_t>(less)));
    });
  }
  // The same of 256 * high + low - less.
  static VecN from_planes(const int32_t* high, const int32_t* low, int32_t less) {
    return make([&](int i) {
      const uint32_t sum = static_cast<uint32_t>(high[i]) * 256 + static_cast<uint32_t>(low[i]);
      return static_cast<float>(static_cast<int32_t>(sum - static_cast<uint32_t>(less)));
    });
  }
  void store(float* p) const { store_partial(p, N); }
  void store_partial(float* p, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) p[i] = lane[i];
  }
  void store_half(uint16_t* p) const { store_half_partial(p, N); }
  void store_half_partial(uint16_t* p, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) p[i] = float_to_half(lane[i]);
  }
  // Nearest integers, ties to even; lanes must be below 2^22 in magnitude.
  void store_int32(int32_t* p) const {
    for (int i = 0; i < N; ++i) {
      p[i] = std::bit_cast<int32_t>(lane[i] + kRoundToInteger) -
             std::bit_cast<int32_t>(kRoundToInteger);
    }
  }

  friend VecN operator+(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  friend VecN operator-(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  friend VecN operator*(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  friend VecN operator/(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  // a * b + c, rounded once.
  friend VecN fma(VecN a, VecN b, VecN c) {
    return make([&](int i) { return std::fma(a.lane[i], b.lane[i], c.lane[i]); });
  }
  // x86 semantics: the second operand where either is NaN or both are zero.
  friend VecN max(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  friend VecN min(VecN a, VecN b) {
    return make([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  friend VecN abs(VecN a) {
    return make([&](int i) { return std::fabs(a.lane[i]); });
  }
  friend VecN sqrt(VecN a) {
    return make([&](int i) { return std::sqrt(a.lane[i]); });
  }
  // a < b ? x : y; false where a or b is NaN.
  friend VecN select_less(VecN a, VecN b, VecN x, VecN y) {
    return make([&](int i) { return a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i]; });
  }
  // 2^n for an integral n in [-126, 127]; anything else gives some float.
  friend VecN power_of_two(VecN n) {
    return make([&](int i) {
      const uint32_t integer = std::bit_cast<uint32_t>(n.lane[i] + kRoundToInteger);
      return std::bit_cast<float>((integer + 127) << 23);
    });
  }
  // Sum and max of all lanes in one fixed tree: lane i meets i + N/2, then i + N/4, ...
  friend float reduce_add(VecN a) {
    for (int half = N / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) a.lane[i] = a.lane[i] + a.lane[i + half];
    }
    return a.lane[0];
  }
  friend float reduce_max(VecN a) {
    for (int half = N / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) {
        a.lane[i] = a.lane[i] > a.lane[i + half] ? a.lane[i] : a.lane[i + half];
      }
    }
    return a.lane[0];
  }

 private:
  template <typename Function>
  static VecN make(Function function) {
    VecN result;
    for (int i = 0; i < N; ++i) result.lane[i] = function(i);
    return result;
  }
};

using Vec16 = VecN<16>;

}  // namespace espalier
