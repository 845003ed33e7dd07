// Any encoding to fp32, bit for bit as gguf-py's quants.dequantize (IEEE conversion for plain types).
// Here rather than in formats/ because units read stored weights too. Thread-safe, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "espalier/base/dtype.h"

namespace espalier {

// `bytes` holds out.size() elements, a whole number of blocks. No alignment is needed.
void dequantize(Encoding encoding, std::span<const std::byte> bytes, std::span<float> out);

// One group of a quantised block in integer form: w[i] = scale * q[i] + offset, the arithmetic that the cpu
// unit computes with. Groups are 32 elements (16 for q2_k, q3_k and q6_k), consecutive along the row.
struct QuantizedGroup {
  float scale = 0;
  float offset = 0;
  int8_t q[32] = {};
};
int64_t group_elements(Encoding encoding);  // 16 or 32; 0 for plain types
// Group `index` of a row stored at `row`.
void decode_group(Encoding encoding, std::span<const std::byte> row, int64_t index, QuantizedGroup& out);

}  // namespace espalier
