// PackedLinear and Activations: the two operands of every matrix product of the cpu unit.
//
// Arithmetic (design §11.1). Activations of a row become integers per K-block: s = absmax / 32639 (two planes) or
// absmax / 127 (one plane), a = round_half_even(x / s). Integer dot products are exact and rounded to fp32 once:
//   int8 per channel:  y = w_scale * sum over K-blocks in K order, fma(float(sum_k q a), s_block, acc)
//   groups (GGUF):     inside a K-block, groups in K order: acc = fma(scale_g, float(sum q a), acc), then
//                      acc = fma(offset_g, float(sum a), acc) where the encoding has offsets; blocks as above
//   float (keep):      fp32, 16 lanes over k, a fixed tree at the end
// K-blocks follow from K alone (k_block_elements), never from threads, windows or ISA.
//
// PackedLinear is immutable and thread-safe; Activations is sized at load and written by one call at a time per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/weights.h"

namespace espalier::units::cpu {

inline constexpr int64_t kPanelOutputs = 16;

enum class LinearArithmetic : uint8_t { kInt8Channel, kGroups, kFloat };

// Elements of one K-block: divides the work of a row of K channels; the last block may be shorter.
int64_t k_block_elements(int64_t columns);

class PackedLinear {
 public:
  // Packs rows [first_row, first_row + row_count) of `tensor`. Plain float encodings become int8 per channel
  // unless `keep_floats`; block encodings keep their integers, scales and offsets. Rows past the last whole
  // panel are padded with zeros. Fails where an encoding cannot be a weight.
  static Result<PackedLinear> pack(const TensorView& tensor, int64_t first_row, int64_t row_count,
                                   bool keep_floats);

  LinearArithmetic arithmetic() const { return arithmetic_; }
  Encoding encoding() const { return encoding_; }  // as stored in the checkpoint
  int64_t rows() const { return rows_; }           // outputs, without padding
  int64_t columns() const { return columns_; }     // K
  int64_t panel_count() const { return (rows_ + kPanelOutputs - 1) / kPanelOutputs; }
  int64_t byte_count() const { return static_cast<int64_t>(storage_.size()); }
  std::span<const std::byte> panel(int64_t index) const;

  // The weights as computed with, fp32 [row_count, columns].
  void read_rows(int64_t first_row, int64_t row_count, std::span<float> out) const;

 private:
  LinearArithmetic arithmetic_ = LinearArithmetic::kFloat;
  Encoding encoding_ = Encoding::kF32;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  int64_t panel_bytes_ = 0;
  std::vector<std::byte> storage_;
};

class Activations {
 public:
  Activations(int64_t max_rows, int64_t columns, int planes);
  int64_t byte_count() const;
  // Layout: owned by the linear kernels (linear.cc says what it is and why).
  int64_t max_rows, columns, block_elements, block_count;
  int planes;
  std::vector<std::byte> storage;
};

}  // namespace espalier::units::cpu
