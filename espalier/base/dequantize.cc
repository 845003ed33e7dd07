#include "espalier/base/dequantize.h"

#include <array>
#include <bit>
#include <cstring>

#include "espalier/base/check.h"

namespace espalier {
namespace {

// A symmetric encoding adds nothing. The zero is negative because x + -0.0f is x for every x, while
// x + 0.0f would turn the -0.0f that gguf-py computes for a negative scale and q == 0 into +0.0f.
constexpr float kNoOffset = -0.0f;

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

float load_half(const std::byte* bytes) { return half_to_float(load<uint16_t>(bytes)); }

int byte_at(const std::byte* bytes, int64_t index) { return static_cast<int>(bytes[index]); }

float f8_e4m3_to_float(uint8_t bits) {  // "FN": no infinities, only S.1111.111 is a NaN
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24;
  const uint32_t exponent = (bits >> 3) & 0xf;
  const uint32_t mantissa = bits & 0x7;
  if ((bits & 0x7f) == 0x7f) return std::bit_cast<float>(sign | 0x7ff00000);  // as torch
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-9
    return std::bit_cast<float>(sign |
                                std::bit_cast<uint32_t>(static_cast<float>(mantissa) * 0x1p-9f));
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

float f8_e5m2_to_float(uint8_t bits) {  // the upper byte of a half
  return half_to_float(static_cast<uint16_t>(bits << 8));
}

template <typename T>
float number_to_float(T value) {
  return static_cast<float>(value);
}

// Block encodings. Layouts are ggml's block_q* structs; `g` is the group's index inside its block,
// `j` an element of the group. Each decoder computes scale and offset with the roundings of
// gguf-py.

// 16 bytes hold 32 elements: element j in the low half of byte j, element 16 + j in the high half.
int low_then_high_nibble(const std::byte* packed, int64_t j) {
  return (byte_at(packed, j % 16) >> (j / 16 * 4)) & 15;
}

// Q5_0, Q5_1: the fifth bits of 32 elements, one 32-bit word.
int fifth_bit(const std::byte* word, int64_t j) {
  return static_cast<int>((load<uint32_t>(word) >> j) & 1) << 4;
}

void decode_q4_0(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, q[16]
  out.scale = load_half(block);
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 32; ++j) {
    out.q[j] = static_cast<int16_t>(low_then_high_nibble(block + 2, j) - 8);
  }
}

void decode_q4_1(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, m, q[16]
  out.scale = load_half(block);
  out.offset = load_half(block + 2);
  for (int64_t j = 0; j < 32; ++j) {
    out.q[j] = static_cast<int16_t>(low_then_high_nibble(block + 4, j));
  }
}

void decode_q5_0(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, high[4], q[16]
  out.scale = load_half(block);
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 32; ++j) {
    const int q = low_then_high_nibble(block + 6, j) | fifth_bit(block + 2, j);
    out.q[j] = static_cast<int16_t>(q - 16);
  }
}

void decode_q5_1(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, m, high[4], q[16]
  out.scale = load_half(block);
  out.offset = load_half(block + 2);
  for (int64_t j = 0; j < 32; ++j) {
    const int q = low_then_high_nibble(block + 8, j) | fifth_bit(block + 4, j);
    out.q[j] = static_cast<int16_t>(q);
  }
}

void decode_q8_0(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, q[32]
  out.scale = load_half(block);
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 32; ++j) {
    const int8_t q = load<int8_t>(block + 2 + j);
    out.q[j] = q;
  }
}

void decode_iq4_nl(const std::byte* block, int64_t, QuantizedGroup& out) {  // d, index[16]
  static constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  out.scale = load_half(block);
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 32; ++j) out.q[j] = kValues[low_then_high_nibble(block + 2, j)];
}

// Q2_K, Q3_K: groups of 16. 32 bytes hold 128 elements, two bits of a byte each: first the lowest
// bits of all 32 bytes, then the next, so that a group is one half of one layer of one of two runs.
int two_bits(const std::byte* packed, int64_t g, int64_t j) {
  return (byte_at(packed, g / 8 * 32 + g % 2 * 16 + j) >> (g % 8 / 2 * 2)) & 3;
}

void decode_q2_k(const std::byte* block, int64_t g, QuantizedGroup& out) {
  // scale_and_min[16], q[64], d, dmin
  const int scale_and_min = byte_at(block, g);
  out.scale = load_half(block + 80) * static_cast<float>(scale_and_min & 15);
  out.offset = -(load_half(block + 82) * static_cast<float>(scale_and_min >> 4));
  for (int64_t j = 0; j < 16; ++j) out.q[j] = static_cast<int16_t>(two_bits(block + 16, g, j));
}

void decode_q3_k(const std::byte* block, int64_t g, QuantizedGroup& out) {
  // high[32], q[64], scales[12], d. A scale has its low 4 bits in scales[0..7], its high 2 in
  // scales[8..11].
  const std::byte* scales = block + 96;
  const int low = (byte_at(scales, g % 8) >> (g / 8 * 4)) & 15;
  const int high = (byte_at(scales, 8 + g % 4) >> (g / 4 * 2)) & 3;
  out.scale = load_half(block + 108) * static_cast<float>((low | (high << 4)) - 32);
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 16; ++j) {
    const int third_bit = (byte_at(block, g % 2 * 16 + j) >> (g / 2)) & 1;  // clear: subtract 4
    out.q[j] = static_cast<int16_t>(two_bits(block + 32, g, j) - 4 + 4 * third_bit);
  }
}

// Q4_K, Q5_K: groups of 32; d, dmin and twelve bytes with eight 6-bit scales and eight 6-bit
// minima.
void decode_scale_and_min(const std::byte* block, int64_t g, QuantizedGroup& out) {
  const std::byte* packed = block + 4;
  int scale = byte_at(packed, g % 4);
  int min = byte_at(packed, 4 + g % 4);
  if (g < 4) {
    scale &= 63;
    min &= 63;
  } else {  // low four bits in the last four bytes, high two bits above the first four scales and
            // minima
    const int low = byte_at(packed, 4 + g);
    scale = (low & 15) | (scale >> 2 & 48);
    min = (low >> 4) | (min >> 2 & 48);
  }
  out.scale = load_half(block) * static_cast<float>(scale);
  out.offset = -(load_half(block + 2) * static_cast<float>(min));
}

// 32 bytes hold two groups: the low nibbles of all bytes, then the high ones.
int nibble_of_group(const std::byte* packed, int64_t g, int64_t j) {
  return (byte_at(packed, g / 2 * 32 + j) >> (g % 2 * 4)) & 15;
}

void decode_q4_k(const std::byte* block, int64_t g, QuantizedGroup& out) {
  // d, dmin, scales and minima[12], q[128]
  decode_scale_and_min(block, g, out);
  for (int64_t j = 0; j < 32; ++j)
    out.q[j] = static_cast<int16_t>(nibble_of_group(block + 16, g, j));
}

void decode_q5_k(const std::byte* block, int64_t g, QuantizedGroup& out) {
  // d, dmin, scales and minima[12], high[32], q[128]
  decode_scale_and_min(block, g, out);
  for (int64_t j = 0; j < 32; ++j) {
    const int high = (byte_at(block + 16, j) >> g) & 1;
    out.q[j] = static_cast<int16_t>(nibble_of_group(block + 48, g, j) | (high << 4));
  }
}

void decode_q6_k(const std::byte* block, int64_t g, QuantizedGroup& out) {
  // low[128], high[64], scales[16] (int8), d. Two runs of 128 elements, eight groups of 16 each.
  const int64_t run = g / 8;
  const int64_t in_run = g % 8;
  out.scale = load_half(block + 208) * static_cast<float>(load<int8_t>(block + 192 + g));
  out.offset = kNoOffset;
  for (int64_t j = 0; j < 16; ++j) {
    const int low = (byte_at(block, run * 64 + in_run % 4 * 16 + j) >> (in_run / 4 * 4)) & 15;
    const int high = (byte_at(block + 128, run * 32 + in_run % 2 * 16 + j) >> (in_run / 2 * 2)) & 3;
    out.q[j] = static_cast<int16_t>((low | (high << 4)) - 32);
  }
}

// MLX: q alone, the first element in the lowest bits; scale and offset lie beside.
template <int64_t kElements>
void decode_affine4(const std::byte* block, int64_t, QuantizedGroup& out) {
  for (int64_t j = 0; j < kElements; ++j)
    out.q[j] = static_cast<int16_t>((byte_at(block, j / 2) >> (j % 2 * 4)) & 15);
}

template <int64_t kElements>
void decode_affine8(const std::byte* block, int64_t, QuantizedGroup& out) {
  for (int64_t j = 0; j < kElements; ++j) out.q[j] = static_cast<int16_t>(byte_at(block, j));
}

using Dequantize = void (*)(const std::byte* bytes, std::span<float> out);
using DecodeGroup = void (*)(const std::byte* block, int64_t g, QuantizedGroup& out);

struct Codec {
  Encoding encoding;
  Dequantize dequantize;     // null where scales lie beside
  int64_t group_elements;    // 0 for plain types
  DecodeGroup decode_group;  // null for plain types
};

template <typename Stored, float (*kToFloat)(Stored)>
void dequantize_plain(const std::byte* bytes, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = kToFloat(load<Stored>(bytes + i * sizeof(Stored)));
}

// The decoder is a template argument so that it is inlined into the loop over groups.
template <Encoding kEncoding, int64_t kGroupElements, DecodeGroup kDecode>
void dequantize_blocks(const std::byte* bytes, std::span<float> out) {
  const auto& info = encoding_info(kEncoding);
  QuantizedGroup group;
  float* to = out.data();
  for (const float* end = to + out.size(); to != end; bytes += info.block_bytes) {
    for (int64_t g = 0; g < info.block_elements / kGroupElements; ++g, to += kGroupElements) {
      kDecode(bytes, g, group);
      for (int64_t j = 0; j < kGroupElements; ++j) {
        to[j] = group.scale * static_cast<float>(group.q[j]) + group.offset;
      }
    }
  }
}

template <Encoding kEncoding, typename Stored, float (*kToFloat)(Stored)>
constexpr Codec plain() {
  return {kEncoding, dequantize_plain<Stored, kToFloat>, 0, nullptr};
}

template <Encoding kEncoding, int64_t kGroupElements, DecodeGroup kDecode>
constexpr Codec blocks() {
  return {kEncoding, dequantize_blocks<kEncoding, kGroupElements, kDecode>, kGroupElements,
          kDecode};
}

template <Encoding kEncoding, int64_t kGroupElements, DecodeGroup kDecode>
constexpr Codec beside() {
  return {kEncoding, nullptr, kGroupElements, kDecode};
}

// Rows in enum order.
constexpr std::array kCodecs = {
    plain<Encoding::kF64, double, number_to_float>(),
    plain<Encoding::kF32, float, number_to_float>(),
    plain<Encoding::kF16, uint16_t, half_to_float>(),
    plain<Encoding::kBF16, uint16_t, bfloat16_to_float>(),
    plain<Encoding::kF8E4M3, uint8_t, f8_e4m3_to_float>(),
    plain<Encoding::kF8E5M2, uint8_t, f8_e5m2_to_float>(),
    plain<Encoding::kI64, int64_t, number_to_float>(),
    plain<Encoding::kI32, int32_t, number_to_float>(),
    plain<Encoding::kI16, int16_t, number_to_float>(),
    plain<Encoding::kI8, int8_t, number_to_float>(),
    plain<Encoding::kU32, uint32_t, number_to_float>(),
    plain<Encoding::kU16, uint16_t, number_to_float>(),
    plain<Encoding::kU8, uint8_t, number_to_float>(),
    plain<Encoding::kBool, uint8_t, number_to_float>(),
    blocks<Encoding::kQ4_0, 32, decode_q4_0>(),
    blocks<Encoding::kQ4_1, 32, decode_q4_1>(),
    blocks<Encoding::kQ5_0, 32, decode_q5_0>(),
    blocks<Encoding::kQ5_1, 32, decode_q5_1>(),
    blocks<Encoding::kQ8_0, 32, decode_q8_0>(),
    blocks<Encoding::kQ2_K, 16, decode_q2_k>(),
    blocks<Encoding::kQ3_K, 16, decode_q3_k>(),
    blocks<Encoding::kQ4_K, 32, decode_q4_k>(),
    blocks<Encoding::kQ5_K, 32, decode_q5_k>(),
    blocks<Encoding::kQ6_K, 16, decode_q6_k>(),
    blocks<Encoding::kIQ4_NL, 32, decode_iq4_nl>(),
    beside<Encoding::kAffine4G32, 32, decode_affine4<32>>(),
    beside<Encoding::kAffine4G64, 64, decode_affine4<64>>(),
    beside<Encoding::kAffine4G128, 128, decode_affine4<128>>(),
    beside<Encoding::kAffine8G32, 32, decode_affine8<32>>(),
    beside<Encoding::kAffine8G64, 64, decode_affine8<64>>(),
    beside<Encoding::kAffine8G128, 128, decode_affine8<128>>(),
};

const Codec& codec(Encoding encoding) {
  const Codec& row = kCodecs.at(static_cast<size_t>(encoding));
  CHECK(row.encoding == encoding);
  return row;
}

// Scale and offset of block `index` of all blocks of a tensor that has them beside.
void read_scales(const BlockScales& beside, int64_t index, QuantizedGroup& out) {
  const int64_t size = encoding_info(beside.encoding).block_bytes;
  const auto read = [&](std::span<const std::byte> all) {
    CHECK_LE((index + 1) * size, static_cast<int64_t>(all.size()));
    const std::byte* at = all.data() + index * size;
    if (beside.encoding == Encoding::kF16) return load_half(at);
    if (beside.encoding == Encoding::kBF16) return bfloat16_to_float(load<uint16_t>(at));
    CHECK(beside.encoding == Encoding::kF32);
    return load<float>(at);
  };
  out.scale = read(beside.scales);
  out.offset = read(beside.offsets);
}

}  // namespace

void dequantize(const TensorView& tensor, std::span<float> out) {
  CHECK_EQ(static_cast<int64_t>(out.size()), tensor.element_count());
  if (!encoding_info(tensor.encoding).scales_beside) {
    dequantize(tensor.encoding, tensor.bytes, out);
    return;
  }
  const int64_t elements = group_elements(tensor.encoding);
  const int64_t groups = tensor.columns() / elements;
  CHECK_EQ(groups * elements, tensor.columns());
  QuantizedGroup group;
  float* to = out.data();
  for (int64_t row = 0; row < tensor.rows(); ++row) {
    for (int64_t index = 0; index < groups; ++index, to += elements) {
      decode_group(tensor, row, index, group);
      for (int64_t j = 0; j < elements; ++j)
        to[j] = group.scale * static_cast<float>(group.q[j]) + group.offset;
    }
  }
}

void dequantize(Encoding encoding, std::span<const std::byte> bytes, std::span<float> out) {
  const auto& info = encoding_info(encoding);
  const auto elements = static_cast<int64_t>(out.size());
  CHECK_EQ(elements % info.block_elements, 0);
  CHECK_EQ(static_cast<int64_t>(bytes.size()), elements / info.block_elements * info.block_bytes);
  CHECK(codec(encoding).dequantize != nullptr);
  codec(encoding).dequantize(bytes.data(), out);
}

int64_t group_elements(Encoding encoding) { return codec(encoding).group_elements; }

void decode_group(const TensorView& tensor, int64_t row, int64_t index, QuantizedGroup& out) {
  const Codec& to_group = codec(tensor.encoding);
  CHECK(to_group.decode_group != nullptr);
  const auto& info = encoding_info(tensor.encoding);
  const int64_t groups_per_block = info.block_elements / to_group.group_elements;
  const int64_t block = index / groups_per_block;
  const auto bytes = tensor.row(row);
  CHECK_GE(index, 0);
  CHECK_LE((block + 1) * info.block_bytes, static_cast<int64_t>(bytes.size()));
  if (info.scales_beside)
    read_scales(tensor.beside, row * tensor.columns() / info.block_elements + index, out);
  to_group.decode_group(bytes.data() + block * info.block_bytes, index % groups_per_block, out);
}

}  // namespace espalier
