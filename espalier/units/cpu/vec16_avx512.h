// Vec16Avx512: base/vec16.h in one 512-bit register. Only for files built for AVX-512 F, BW, VL and
// DQ.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace espalier::units::cpu {

struct Vec16Avx512 {
  static constexpr int64_t kLanes = 16;
  static constexpr int kSumRegisters = 24;  // vectors that sums may fill, beside operands
  __m512 value;

  static Vec16Avx512 broadcast(float x) { return {_mm512_set1_ps(x)}; }
  static Vec16Avx512 zero() { return {_mm512_setzero_ps()}; }
  static Vec16Avx512 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static Vec16Avx512 load_partial(const float* p, int64_t count) {
    return {_mm512_maskz_loadu_ps(mask(count), p)};
  }
  static Vec16Avx512 load_half(const uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static Vec16Avx512 load_half_partial(const uint16_t* p, int64_t count) {
    return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask(count), p))};
  }
  static Vec16Avx512 load_bfloat16(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
  }
  static Vec16Avx512 broadcast_integer(int32_t x) {
    return {_mm512_cvtepi32_ps(_mm512_set1_epi32(x))};
  }
  // Nearest fp32 of integers[lane] - less; wraps like int32.
  static Vec16Avx512 from_integers(const int32_t* integers, int32_t less) {
    return {_mm512_cvtepi32_ps(
        _mm512_sub_epi32(_mm512_loadu_si512(integers), _mm512_set1_epi32(less)))};
  }
  // The same of 256 * high + low - less.
  static Vec16Avx512 from_planes(const int32_t* high, const int32_t* low, int32_t less) {
    const __m512i sum =
        _mm512_add_epi32(_mm512_slli_epi32(_mm512_loadu_si512(high), 8), _mm512_loadu_si512(low));
    return {_mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(less)))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, value); }
  void store_partial(float* p, int64_t count) const {
    _mm512_mask_storeu_ps(p, mask(count), value);
  }
  void store_half(uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(value, kNearestEven));
  }
  void store_half_partial(uint16_t* p, int64_t count) const {
    _mm256_mask_storeu_epi16(p, mask(count), _mm512_cvtps_ph(value, kNearestEven));
  }
  void store_int32(int32_t* p) const { _mm512_storeu_si512(p, _mm512_cvtps_epi32(value)); }

  friend Vec16Avx512 operator+(Vec16Avx512 a, Vec16Avx512 b) {
    return {_mm512_add_ps(a.value, b.value)};
  }
  friend Vec16Avx512 operator-(Vec16Avx512 a, Vec16Avx512 b) {
    return {_mm512_sub_ps(a.value, b.value)};
  }
  friend Vec16Avx512 operator*(Vec16Avx512 a, Vec16Avx512 b) {
    return {_mm512_mul_ps(a.value, b.value)};
  }
  friend Vec16Avx512 operator/(Vec16Avx512 a, Vec16Avx512 b) {
    return {_mm512_div_ps(a.value, b.value)};
  }
  friend Vec16Avx512 fma(Vec16Avx512 a, Vec16Avx512 b, Vec16Avx512 c) {
    return {_mm512_fmadd_ps(a.value, b.value, c.value)};
  }
  friend Vec16Avx512 max(Vec16Avx512 a, Vec16Avx512 b) { return {_mm512_max_ps(a.value, b.value)}; }
  friend Vec16Avx512 min(Vec16Avx512 a, Vec16Avx512 b) { return {_mm512_min_ps(a.value, b.value)}; }
  friend Vec16Avx512 abs(Vec16Avx512 a) { return {_mm512_abs_ps(a.value)}; }
  friend Vec16Avx512 sqrt(Vec16Avx512 a) { return {_mm512_sqrt_ps(a.value)}; }
  friend Vec16Avx512 select_less(Vec16Avx512 a, Vec16Avx512 b, Vec16Avx512 x, Vec16Avx512 y) {
    const __mmask16 less = _mm512_cmp_ps_mask(a.value, b.value, _CMP_LT_OQ);
    return {_mm512_mask_blend_ps(less, y.value, x.value)};
  }
  friend Vec16Avx512 power_of_two(Vec16Avx512 n) {
    const __m512i integer = _mm512_castps_si512(_mm512_add_ps(n.value, _mm512_set1_ps(0x1.8p23f)));
    const __m512i biased = _mm512_add_epi32(integer, _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  friend float reduce_add(Vec16Avx512 a) {
    const __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256(a.value), _mm512_extractf32x8_ps(a.value, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  friend float reduce_max(Vec16Avx512 a) {
    const __m256 eight =
        _mm256_max_ps(_mm512_castps512_ps256(a.value), _mm512_extractf32x8_ps(a.value, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

 private:
  static constexpr int kNearestEven = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  static __mmask16 mask(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
};

}  // namespace espalier::units::cpu
