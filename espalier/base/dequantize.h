// Any encoding to fp32, bit for bit as gguf-py's quants.dequantize and, of scales as fp32, MLX's
// dequantize (IEEE conversion for plain types). Here rather than in formats/ because units read stored weights too. Thread-safe, no
// allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "espalier/base/dtype.h"
#include "espalier/base/weights.h"

namespace espalier {

// All of `tensor`, whose rows are whole blocks. No alignment is needed.
void dequantize(const TensorView& tensor, std::span<float> out);
// `bytes` holds out.size() elements, a whole number of blocks, and their scales.
void dequantize(Encoding encoding, std::span<const std::byte> bytes, std::span<float> out);

// One group of a quantised block in integer form: w[i] = scale * q[i] + offset, the arithmetic that
// the cpu unit computes with. Groups are 32 elements (16 for q2_k, q3_k and q6_k; the block of an
// affine encoding), consecutive along the row. In fp32, with the product rounded before the sum, it gives the bits of
// dequantize() for every encoding:
//
//   encoding        scale                 q            offset
//   q4_0            d                     -8 .. 7      -0.0
//   q4_1            d                     0 .. 15      m
//   q5_0            d                     -16 .. 15    -0.0
//   q5_1            d                     0 .. 31      m
//   q8_0            d                     -128 .. 127  -0.0
//   iq4_nl          d                     -127 .. 113  -0.0
//   q2_k            fp32(d * sc), 4 bits  0 .. 3       -fp32(dmin * m)
//   q3_k            fp32(d * sc), signed  -4 .. 3      -0.0
//   q4_k            fp32(d * sc), 6 bits  0 .. 15      -fp32(dmin * m)
//   q5_k            fp32(d * sc), 6 bits  0 .. 31      -fp32(dmin * m)
//   q6_k            fp32(d * sc), signed  -32 .. 31    -0.0
//   affine4g*       scale                 0 .. 15      offset (MLX: bias)
//   affine8g*       scale                 0 .. 255     offset
//
// -0.0 stands for "no offset": x + -0.0 is x for every x, including -0.0.
inline constexpr int64_t kMaxGroupElements = 128;
struct QuantizedGroup {
  float scale = 0;
  float offset = 0;
  int16_t q[kMaxGroupElements] = {};
};
int64_t group_elements(Encoding encoding);  // 16, 32, 64 or 128; 0 for plain types
// Group `index` of row `row`; a CHECK fails where there is no such group.
void decode_group(const TensorView& tensor, int64_t row, int64_t index, QuantizedGroup& out);

}  // namespace espalier
