// Random matrices of every encoding that can be a weight, for the tests of packing and of products.
// The same seed gives the same bytes everywhere.
//
// A Matrix owns the bytes that its view shows: it may be moved, not copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "espalier/base/dtype.h"
#include "espalier/base/weights.h"

namespace espalier::units::cpu {

struct HalfFields {
  Encoding encoding;
  std::vector<int64_t> at;  // byte offsets of the fp16 fields of a block
};

inline const std::vector<HalfFields>& block_encodings() {
  static const std::vector<HalfFields> kRows = {
      {Encoding::kQ4_0, {0}},      {Encoding::kQ4_1, {0, 2}}, {Encoding::kQ5_0, {0}},
      {Encoding::kQ5_1, {0, 2}},   {Encoding::kQ8_0, {0}},    {Encoding::kIQ4_NL, {0}},
      {Encoding::kQ2_K, {80, 82}}, {Encoding::kQ3_K, {108}},  {Encoding::kQ4_K, {0, 2}},
      {Encoding::kQ5_K, {0, 2}},   {Encoding::kQ6_K, {208}},
  };
  return kRows;
}

struct Affine {
  Encoding encoding;
  Encoding scales;
};

// All affine encodings; scales of every type with 4 and with 8 bits.
inline const std::vector<Affine>& affine_encodings() {
  static const std::vector<Affine> kRows = {
      {Encoding::kAffine4G32, Encoding::kF32},  {Encoding::kAffine4G64, Encoding::kBF16},
      {Encoding::kAffine4G64, Encoding::kF16},  {Encoding::kAffine4G128, Encoding::kF16},
      {Encoding::kAffine8G32, Encoding::kBF16}, {Encoding::kAffine8G64, Encoding::kF16},
      {Encoding::kAffine8G64, Encoding::kBF16}, {Encoding::kAffine8G128, Encoding::kF32},
  };
  return kRows;
}

struct Matrix {
  std::vector<std::byte> bytes;
  std::vector<std::byte> scales, offsets;  // of affine encodings
  TensorView view;
};

// Within 0.1 of 0, and the same with every standard library.
inline float small_number(std::mt19937_64& random) {
  return (static_cast<float>(random() % 8193) / 4096 - 1) * 0.1f;
}

inline void put_half(float value, std::byte* at) {
  const uint16_t half = float_to_half(value);
  std::memcpy(at, &half, sizeof(half));
}

// Random bytes are valid integers of every block encoding; the fp16 fields get random finite
// scales.
inline Matrix random_blocks(const HalfFields& fields, int64_t rows, int64_t columns,
                            std::mt19937_64& random) {
  const EncodingInfo& info = encoding_info(fields.encoding);
  Matrix matrix;
  matrix.bytes.resize(static_cast<size_t>(rows * columns / info.block_elements * info.block_bytes));
  for (std::byte& b : matrix.bytes) b = static_cast<std::byte>(random());
  for (size_t block = 0; block < matrix.bytes.size();
       block += static_cast<size_t>(info.block_bytes)) {
    for (const int64_t at : fields.at)
      put_half(small_number(random), &matrix.bytes[block + static_cast<size_t>(at)]);
  }
  matrix.view = {fields.encoding, {rows, columns}, matrix.bytes};
  return matrix;
}

inline void put_float(Encoding encoding, float value, std::byte* at) {
  const uint16_t narrow =
      encoding == Encoding::kF16 ? float_to_half(value) : float_to_bfloat16(value);
  std::memcpy(at, encoding == Encoding::kF32 ? static_cast<const void*>(&value) : &narrow,
              static_cast<size_t>(encoding_info(encoding).block_bytes));
}

inline std::vector<std::byte> random_floats(Encoding encoding, int64_t count,
                                            std::mt19937_64& random) {
  const auto size = static_cast<size_t>(encoding_info(encoding).block_bytes);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size);
  for (size_t at = 0; at < bytes.size(); at += size)
    put_float(encoding, small_number(random), &bytes[at]);
  return bytes;
}

inline Matrix float_matrix(Encoding encoding, int64_t rows, int64_t columns,
                           std::mt19937_64& random) {
  Matrix matrix;
  matrix.bytes = random_floats(encoding, rows * columns, random);
  matrix.view = {encoding, {rows, columns}, matrix.bytes};
  return matrix;
}

inline Matrix affine_matrix(const Affine& affine, int64_t rows, int64_t columns,
                            std::mt19937_64& random) {
  Matrix matrix = random_blocks({affine.encoding, {}}, rows, columns, random);
  const int64_t groups = rows * columns / encoding_info(affine.encoding).block_elements;
  matrix.scales = random_floats(affine.scales, groups, random);
  matrix.offsets = random_floats(affine.scales, groups, random);
  matrix.view.beside = {affine.scales, matrix.scales, matrix.offsets};
  return matrix;
}

}  // namespace espalier::units::cpu
