// Int8KeyValueRows: K and V of one layer in 8 bits, so that attention is a pair of matrix products of the kernels that
// multiply weights (docs/numerics.md).
//
// Every position of a KV head has two scales, absmax / 127 of its K and of its V. K lies as weights do whose outputs
// are positions and whose K are channels; V as weights whose outputs are channels and whose K are 512 positions, a
// chunk, scale 1: the scale of a position is multiplied into its attention weight instead. Memory is allocated by the
// constructor alone. Positions are written by one thread each and read after a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/units/cpu/linear_layout.h"
#include "espalier/units/cpu/panel_layout.h"

namespace espalier::units::cpu {

struct StateShape;

inline constexpr int64_t kChunkPositions = kBlockElements;

class Int8KeyValueRows {
 public:
  Int8KeyValueRows() = default;
  Int8KeyValueRows(const StateShape& shape, int64_t positions);

  int64_t byte_count() const;
  // K of positions [0, count) of a head: weights [count, head_dim].
  LinearLayout keys(int64_t head, int64_t count) const;
  // V of a chunk of a head: weights [head_dim, kChunkPositions].
  LinearLayout values(int64_t head, int64_t chunk) const;
  const float* value_scales(int64_t head) const { return value_scales_.data() + head * positions_; }

  // k, v: [kv_heads, head_dim]. Magnitudes beyond fp16 become its largest; a NaN stays one, as the scale.
  void write_position(int64_t position, const float* k, const float* v);
  // Copies one position of all heads, and the first positions.
  void copy_position(const Int8KeyValueRows& from, int64_t from_position, int64_t to_position);
  void copy_first(const Int8KeyValueRows& from, int64_t positions);
  // V of one position of a head into `chunk_bytes`, a chunk like those of values(), at position `at` of it.
  void copy_value(int64_t head, int64_t position, std::byte* chunk_bytes, int64_t at) const;
  int64_t chunk_bytes() const { return panels_of(head_dim_) * int8_panel_bytes(kChunkPositions); }

  // One position as bytes: per head K [head_dim] int8, its scale fp32, V likewise.
  static int64_t position_bytes(const StateShape& shape);
  static int64_t scale_bytes(const StateShape& shape);  // of them; 0 for other kinds of state
  void read_position(int64_t position, std::span<std::byte> out) const;
  void write_position_bytes(int64_t position, std::span<const std::byte> bytes);

 private:
  int64_t padded_head_dim() const { return round_up(head_dim_, kColumnAlignment); }
  std::byte* key_panel(int64_t head, int64_t position);
  std::byte* key(int64_t head, int64_t position, int64_t d);
  std::byte* key_scale(int64_t head, int64_t position);
  std::byte* value(int64_t head, int64_t position, int64_t d);
  const std::byte* key(int64_t head, int64_t position, int64_t d) const {
    return const_cast<Int8KeyValueRows*>(this)->key(head, position, d);
  }
  const std::byte* key_scale(int64_t head, int64_t position) const {
    return const_cast<Int8KeyValueRows*>(this)->key_scale(head, position);
  }
  const std::byte* value(int64_t head, int64_t position, int64_t d) const {
    return const_cast<Int8KeyValueRows*>(this)->value(head, position, d);
  }

  int64_t kv_heads_ = 0;
  int64_t head_dim_ = 0;
  int64_t positions_ = 0;
  int64_t key_head_bytes_ = 0;
  int64_t value_head_bytes_ = 0;
  std::vector<std::byte> keys_;      // [kv_heads][panels of 16 positions]
  std::vector<std::byte> values_;    // [kv_heads][chunks][panels of 16 channels]
  std::vector<float> value_scales_;  // [kv_heads, positions]
};

}  // namespace espalier::units::cpu
