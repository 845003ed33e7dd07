// Vec16Neon: base/vec16.h in four 128-bit registers, for AArch64.
//
// Set is a tag: files that are built with different flags must not share instantiations, so each has its own.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "espalier/units/cpu/unrolled.h"

namespace espalier::units::cpu {

template <class Set>
struct Vec16Neon {
  static constexpr int64_t kLanes = 16;
  static constexpr int kSumRegisters = 6;  // vectors that sums may fill, beside operands
  float32x4_t part[4];

  static Vec16Neon broadcast(float x) {
    return make([&](int) { return vdupq_n_f32(x); });
  }
  static Vec16Neon zero() { return broadcast(0.0f); }
  static Vec16Neon load(const float* p) {
    return make([&](int i) { return vld1q_f32(p + 4 * i); });
  }
  static Vec16Neon load_partial(const float* p, int64_t count) {
    float whole[16] = {};
    for (int64_t i = 0; i < count; ++i) whole[i] = p[i];
    return load(whole);
  }
  static Vec16Neon load_half(const uint16_t* p) {
    return make([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))); });
  }
  static Vec16Neon load_half_partial(const uint16_t* p, int64_t count) {
    uint16_t whole[16] = {};
    for (int64_t i = 0; i < count; ++i) whole[i] = p[i];
    return load_half(whole);
  }
  static Vec16Neon load_bfloat16(const uint16_t* p) {
    return make([&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)); });
  }
  static Vec16Neon broadcast_integer(int32_t x) { return broadcast(static_cast<float>(x)); }
  // Nearest fp32 of integers[lane] - less; wraps like int32.
  static Vec16Neon from_integers(const int32_t* integers, int32_t less) {
    return make([&](int i) {
      return vcvtq_f32_s32(vsubq_s32(vld1q_s32(integers + 4 * i), vdupq_n_s32(less)));
    });
  }
  // The same of 256 * high + low - less.
  static Vec16Neon from_planes(const int32_t* high, const int32_t* low, int32_t less) {
    return make([&](int i) {
      const int32x4_t sum =
          vaddq_s32(vshlq_n_s32(vld1q_s32(high + 4 * i), 8), vld1q_s32(low + 4 * i));
      return vcvtq_f32_s32(vsubq_s32(sum, vdupq_n_s32(less)));
    });
  }
  void store(float* p) const {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, part[i]);
  }
  void store_partial(float* p, int64_t count) const {
    if (count == kLanes) return store(p);
    float whole[16];
    store(whole);
    for (int64_t i = 0; i < count; ++i) p[i] = whole[i];
  }
  void store_half(uint16_t* p) const {
    for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(part[i])));
  }
  void store_half_partial(uint16_t* p, int64_t count) const {
    uint16_t whole[16];
    store_half(whole);
    for (int64_t i = 0; i < count; ++i) p[i] = whole[i];
  }
  void store_int32(int32_t* p) const {
    for (int i = 0; i < 4; ++i) vst1q_s32(p + 4 * i, vcvtnq_s32_f32(part[i]));
  }

  friend Vec16Neon operator+(Vec16Neon a, Vec16Neon b) {
    return make([&](int i) { return vaddq_f32(a.part[i], b.part[i]); });
  }
  friend Vec16Neon operator-(Vec16Neon a, Vec16Neon b) {
    return make([&](int i) { return vsubq_f32(a.part[i], b.part[i]); });
  }
  friend Vec16Neon operator*(Vec16Neon a, Vec16Neon b) {
    return make([&](int i) { return vmulq_f32(a.part[i], b.part[i]); });
  }
  friend Vec16Neon operator/(Vec16Neon a, Vec16Neon b) {
    return make([&](int i) { return vdivq_f32(a.part[i], b.part[i]); });
  }
  friend Vec16Neon fma(Vec16Neon a, Vec16Neon b, Vec16Neon c) {
    return make([&](int i) { return vfmaq_f32(c.part[i], a.part[i], b.part[i]); });
  }
  // By comparison, not FMAX: the second operand where either is NaN or both are zero.
  friend Vec16Neon max(Vec16Neon a, Vec16Neon b) {
    return make([&](int i) { return larger(a.part[i], b.part[i]); });
  }
  friend Vec16Neon min(Vec16Neon a, Vec16Neon b) { return select_less(a, b, a, b); }
  friend Vec16Neon abs(Vec16Neon a) {
    return make([&](int i) { return vabsq_f32(a.part[i]); });
  }
  friend Vec16Neon sqrt(Vec16Neon a) {
    return make([&](int i) { return vsqrtq_f32(a.part[i]); });
  }
  friend Vec16Neon select_less(Vec16Neon a, Vec16Neon b, Vec16Neon x, Vec16Neon y) {
    return make(
        [&](int i) { return vbslq_f32(vcltq_f32(a.part[i], b.part[i]), x.part[i], y.part[i]); });
  }
  friend Vec16Neon power_of_two(Vec16Neon n) {
    return make([&](int i) {
      const float32x4_t rounded = vaddq_f32(n.part[i], vdupq_n_f32(0x1.8p23f));
      const int32x4_t biased = vaddq_s32(vreinterpretq_s32_f32(rounded), vdupq_n_s32(127));
      return vreinterpretq_f32_s32(vshlq_n_s32(biased, 23));
    });
  }
  friend float reduce_add(Vec16Neon a) {
    const float32x4_t four =
        vaddq_f32(vaddq_f32(a.part[0], a.part[2]), vaddq_f32(a.part[1], a.part[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
  }
  friend float reduce_max(Vec16Neon a) {
    const float32x4_t four = larger(larger(a.part[0], a.part[2]), larger(a.part[1], a.part[3]));
    const float32x4_t two = larger(four, vextq_f32(four, four, 2));
    return vgetq_lane_f32(larger(two, vextq_f32(two, two, 1)), 0);
  }

 private:
  template <typename Function>
  [[gnu::always_inline]] static inline Vec16Neon make(Function function) {
    Vec16Neon result;
    unrolled<4>([&](auto i) ESPALIER_INLINE { result.part[i] = function(i); });
    return result;
  }
  static float32x4_t larger(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
  }
};

}  // namespace espalier::units::cpu
