// Element types and weight encodings: one table (encoding_info) for all of them.
// A block encoding stores `block_elements` consecutive elements of a row in `block_bytes` bytes;
// a plain type is a block of one element. The byte layouts of the GGUF blocks are those of ggml's
// block_q* structs, those of the affine ones MLX's; base/dequantize.h turns any of them into fp32.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espalier {

enum class Encoding : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU32,
  kU16,
  kU8,
  kBool,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kAffine4G32,  // MLX: 4 or 8 bits, groups of 32, 64 or 128
  kAffine4G64,
  kAffine4G128,
  kAffine8G32,
  kAffine8G64,
  kAffine8G128,
};

struct EncodingInfo {
  Encoding encoding;
  std::string_view name;   // "bf16", "q4_1": for messages, --json and the program text
  int64_t block_elements;  // elements of one block; 1 for plain types
  int64_t block_bytes;
  bool scales_beside = false;  // not in the block but in tensors of their own: TensorView::beside
};

const EncodingInfo& encoding_info(Encoding encoding);
inline std::string_view name_of(Encoding encoding) { return encoding_info(encoding).name; }
std::optional<Encoding> encoding_from_name(std::string_view name);

// IEEE half and bfloat16 conversions, round to nearest even, NaN kept quiet.
float half_to_float(uint16_t half);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

}  // namespace espalier
