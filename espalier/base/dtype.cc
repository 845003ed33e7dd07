#include "espalier/base/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "espalier/base/check.h"

namespace espalier {
namespace {

// Rows in enum order. Block sizes of the GGUF encodings: ggml's block_q* structs. Of the affine ones
// the integers alone.
constexpr std::array kEncodings = {
    EncodingInfo{Encoding::kF64, "f64", 1, 8},
    EncodingInfo{Encoding::kF32, "f32", 1, 4},
    EncodingInfo{Encoding::kF16, "f16", 1, 2},
    EncodingInfo{Encoding::kBF16, "bf16", 1, 2},
    EncodingInfo{Encoding::kF8E4M3, "f8_e4m3", 1, 1},
    EncodingInfo{Encoding::kF8E5M2, "f8_e5m2", 1, 1},
    EncodingInfo{Encoding::kI64, "i64", 1, 8},
    EncodingInfo{Encoding::kI32, "i32", 1, 4},
    EncodingInfo{Encoding::kI16, "i16", 1, 2},
    EncodingInfo{Encoding::kI8, "i8", 1, 1},
    EncodingInfo{Encoding::kU32, "u32", 1, 4},
    EncodingInfo{Encoding::kU16, "u16", 1, 2},
    EncodingInfo{Encoding::kU8, "u8", 1, 1},
    EncodingInfo{Encoding::kBool, "bool", 1, 1},
    EncodingInfo{Encoding::kQ4_0, "q4_0", 32, 18},
    EncodingInfo{Encoding::kQ4_1, "q4_1", 32, 20},
    EncodingInfo{Encoding::kQ5_0, "q5_0", 32, 22},
    EncodingInfo{Encoding::kQ5_1, "q5_1", 32, 24},
    EncodingInfo{Encoding::kQ8_0, "q8_0", 32, 34},
    EncodingInfo{Encoding::kQ2_K, "q2_k", 256, 84},
    EncodingInfo{Encoding::kQ3_K, "q3_k", 256, 110},
    EncodingInfo{Encoding::kQ4_K, "q4_k", 256, 144},
    EncodingInfo{Encoding::kQ5_K, "q5_k", 256, 176},
    EncodingInfo{Encoding::kQ6_K, "q6_k", 256, 210},
    EncodingInfo{Encoding::kIQ4_NL, "iq4_nl", 32, 18},
    EncodingInfo{Encoding::kAffine4G32, "affine4g32", 32, 16, true},
    EncodingInfo{Encoding::kAffine4G64, "affine4g64", 64, 32, true},
    EncodingInfo{Encoding::kAffine4G128, "affine4g128", 128, 64, true},
    EncodingInfo{Encoding::kAffine8G32, "affine8g32", 32, 32, true},
    EncodingInfo{Encoding::kAffine8G64, "affine8g64", 64, 64, true},
    EncodingInfo{Encoding::kAffine8G128, "affine8g128", 128, 128, true},
};

}  // namespace

const EncodingInfo& encoding_info(Encoding encoding) {
  const auto& info = kEncodings.at(static_cast<size_t>(encoding));
  CHECK(info.encoding == encoding);
  return info;
}

std::optional<Encoding> encoding_from_name(std::string_view name) {
  for (const auto& info : kEncodings) {
    if (info.name == name) return info.encoding;
  }
  return std::nullopt;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t quiet = (exponent == 31 && mantissa != 0) ? 0x400000 : 0;
  const uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13) | quiet);
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN, as vcvtps2ph: keep the top payload bits, set the quiet bit
    return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  }
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to infinity (65520 and above)
  if (magnitude < 0x38800000) {                       // subnormal half or zero
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace espalier
