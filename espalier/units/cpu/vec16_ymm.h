// Vec16Ymm: base/vec16.h in two 256-bit registers. Only for files built for AVX2, FMA and F16C.
//
// Set is a tag: files that are built with different flags must not share instantiations, so each has its own.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace espalier::units::cpu {

template <class Set>
struct Vec16Ymm {
  static constexpr int64_t kLanes = 16;
  static constexpr int kSumRegisters = 5;  // vectors that sums may fill, beside operands
  __m256 low, high;

  static Vec16Ymm broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vec16Ymm zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static Vec16Ymm load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static Vec16Ymm load_partial(const float* p, int64_t count) {
    return {_mm256_maskload_ps(p, mask(count)), _mm256_maskload_ps(p + 8, mask(count - 8))};
  }
  static Vec16Ymm load_half(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static Vec16Ymm load_half_partial(const uint16_t* p, int64_t count) {
    alignas(32) uint16_t whole[16] = {};
    for (int64_t i = 0; i < count; ++i) whole[i] = p[i];
    return load_half(whole);
  }
  static Vec16Ymm load_bfloat16(const uint16_t* p) {
    return {widen_bfloat16(p), widen_bfloat16(p + 8)};
  }
  void store(float* p) const {
    _mm256_storeu_ps(p, low);
    _mm256_storeu_ps(p + 8, high);
  }
  void store_partial(float* p, int64_t count) const {
    _mm256_maskstore_ps(p, mask(count), low);
    _mm256_maskstore_ps(p + 8, mask(count - 8), high);
  }
  void store_half(uint16_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(low, kNearestEven));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(high, kNearestEven));
  }
  void store_half_partial(uint16_t* p, int64_t count) const {
    alignas(32) uint16_t whole[16];
    store_half(whole);
    for (int64_t i = 0; i < count; ++i) p[i] = whole[i];
  }
  void store_int32(int32_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_cvtps_epi32(low));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), _mm256_cvtps_epi32(high));
  }

  friend Vec16Ymm operator+(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  friend Vec16Ymm operator-(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  friend Vec16Ymm operator*(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  friend Vec16Ymm operator/(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  friend Vec16Ymm fma(Vec16Ymm a, Vec16Ymm b, Vec16Ymm c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  friend Vec16Ymm max(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  friend Vec16Ymm min(Vec16Ymm a, Vec16Ymm b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  friend Vec16Ymm abs(Vec16Ymm a) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, a.low), _mm256_andnot_ps(sign, a.high)};
  }
  friend Vec16Ymm sqrt(Vec16Ymm a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
  friend Vec16Ymm select_less(Vec16Ymm a, Vec16Ymm b, Vec16Ymm x, Vec16Ymm y) {
    return {_mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }
  friend Vec16Ymm power_of_two(Vec16Ymm n) {
    return {power_of_two_half(n.low), power_of_two_half(n.high)};
  }
  friend float reduce_add(Vec16Ymm a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  friend float reduce_max(Vec16Ymm a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  static constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

  // Sign bits set in the first `count` of eight lanes; any count is allowed.
  static __m256i mask(int64_t count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)), index);
  }
  static __m256 widen_bfloat16(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static __m256 power_of_two_half(__m256 n) {
    const __m256i integer = _mm256_castps_si256(_mm256_add_ps(n, _mm256_set1_ps(0x1.8p23f)));
    const __m256i biased = _mm256_add_epi32(integer, _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
};

}  // namespace espalier::units::cpu
