// PackedLinear and Activations: the two operands of every matrix product of the cpu unit.
//
// Arithmetic (docs/numerics.md). K is divided into blocks of 512 (the last one may be shorter). Per row
// and block, activations become integers: s = absmax / 32639 (two planes) or absmax / 127 (one
// plane), a = round_half_even(x / s). Integer dot products are exact (they fit int32) and rounded
// to fp32 once; y starts at 0:
//   int8 per channel:  blocks in K order: y = fma(float(sum q a), s, y); at the end y = y * w_scale
//   groups:            per block acc = 0; groups in K order: acc = fma(scale_g, float(sum q a), acc),
//                      then acc = fma(offset_g, float(sum a), acc) where the encoding has offsets;
//                      y = fma(acc, s, y)
//   float (keep):      per block acc = 0; acc = fma(w, x, acc) in K order; y = y + acc
// A block whose absmax is below 2^-100 counts as zeros. A block that holds an infinity or a NaN has
// s = NaN and a = 0: every output of that row is NaN, no other row notices.
//
// PackedLinear is immutable and thread-safe. Activations is sized at load; rows may be written by
// several threads, each row by one, and are read by kernels of the set that wrote them (how the
// integers lie is the set's affair).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/units/cpu/linear_layout.h"

namespace espalier::units::cpu {

enum class LinearArithmetic : uint8_t { kInt8Channel, kGroups, kFloat };

// What becomes of plain floats: int8 with a scale per output, or per 64 k of an output; or they are kept.
enum class FloatMode : uint8_t { kInt8Channel, kInt8Groups, kKeep };
inline constexpr int64_t kFloatGroupElements = 64;

// Bytes, zeroed unless wished otherwise, aligned to cache lines (to huge pages where there is enough to fill one).
class AlignedBytes {
 public:
  AlignedBytes() = default;
  static Result<AlignedBytes> allocate(int64_t size);
  static Result<AlignedBytes> allocate_unfilled(int64_t size);  // of any content
  std::byte* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> data_;
  int64_t size_ = 0;
};

class PackedLinear {
 public:
  // Packs rows [first_row, first_row + row_count) of `tensor`. What becomes of plain float encodings, `floats` says; block encodings keep their integers, scales and offsets. Rows
  // past the last whole panel are padded with zeros. Fails where an encoding cannot be a weight or
  // a weight is not finite.
  static Result<PackedLinear> pack(const TensorView& tensor, int64_t first_row, int64_t row_count,
                                   FloatMode floats);

  // int8 per channel that lies in memory of the caller, who keeps it.
  static PackedLinear over(const LinearLayout& layout);

  // The same in steps, for a caller that owns the memory: form and sizes of all rows of `tensor`;
  // its panels, some at a time, by any thread, each byte of them written; and where they lie.
  static Result<PackedLinear> plan(const TensorView& tensor, FloatMode floats);
  Status pack_panels(const TensorView& tensor, int64_t first_panel, int64_t panel_count,
                     std::byte* out) const;
  void set_panels(const std::byte* panels) { layout_.panels = panels; }

  LinearArithmetic arithmetic() const;
  Encoding encoding() const { return encoding_; }  // as stored in the checkpoint
  std::string description() const;                 // the encoding, and what became of plain floats
  int64_t rows() const { return layout_.rows; }    // outputs, without padding
  int64_t columns() const { return layout_.columns; }  // K
  int64_t panel_count() const { return (rows() + kPanelOutputs - 1) / kPanelOutputs; }
  int64_t byte_count() const { return panel_count() * layout_.panel_bytes; }
  // Planes that Activations for this weight need: `requested` (1 or 2), or 0 for float arithmetic.
  int activation_planes(int requested) const;

  // The weights as computed with, fp32 [row_count, columns]. Does not allocate.
  void read_rows(int64_t first_row, int64_t row_count, std::span<float> out) const;

  const LinearLayout& layout() const;  // for kernels; not inline, see linear_layout.h

 private:
  PackedLinear() = default;
  void read_group_row(int64_t row, std::span<float> out) const;
  void read_int8_row(int64_t row, std::span<float> out) const;
  void read_float_row(int64_t row, std::span<float> out) const;

  Encoding encoding_ = Encoding::kF32;
  LinearLayout layout_ = {};
  AlignedBytes storage_;  // empty where the caller owns the panels
};

class Activations {
 public:
  // planes: 2 or 1 for integer weights, 0 for float weights (PackedLinear::activation_planes).
  static Result<Activations> create(int64_t max_rows, int64_t columns, int planes);

  int64_t byte_count() const { return storage_.size(); }
  int64_t max_rows() const { return max_rows_; }
  int planes() const { return layout_.planes; }
  const ActivationLayout& layout() const;  // for kernels; not inline

 private:
  Activations() = default;

  int64_t max_rows_ = 0;
  ActivationLayout layout_ = {};
  AlignedBytes storage_;
};

}  // namespace espalier::units::cpu
