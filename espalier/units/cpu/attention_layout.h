// How K and V lie in memory, fp16, per KV head: of the committed positions (a State) and of the
// window (staged rows).
//
//   K: blocks of 16 positions, [block][head_dim][16]: the scores of 16 positions are one vector
//      that grows over d, so each score is a sequential sum over d whatever lane its position has.
//   V: [position][value_stride], head_dim rounded up to whole vectors: the weighted sum runs over
//      positions in order.
//
// Formulas only; memory belongs to the State.
#pragma once

#include <cstdint>

namespace espalier::units::cpu {

inline constexpr int64_t kLanes = 16;

constexpr int64_t round_up_to_lanes(int64_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

// Elements of K of one KV head for `positions` positions.
constexpr int64_t key_elements(int64_t positions, int64_t head_dim) {
  return round_up_to_lanes(positions) * head_dim;
}
// Index of channel d of K at `position`; channels of one position are kLanes apart.
constexpr int64_t key_index(int64_t position, int64_t d, int64_t head_dim) {
  return (position / kLanes * head_dim + d) * kLanes + position % kLanes;
}
constexpr int64_t value_stride(int64_t head_dim) { return round_up_to_lanes(head_dim); }
constexpr int64_t value_elements(int64_t positions, int64_t head_dim) {
  return positions * value_stride(head_dim);
}

// Floats of scratch that one tile of `queries` needs: the queries, their scores by absolute
// position (committed positions and the deepest path) and their scores by window row.
constexpr int64_t attention_scratch_floats(int64_t queries, int64_t kv_rows, int64_t window_rows,
                                           int64_t head_dim) {
  return queries *
         (head_dim + round_up_to_lanes(kv_rows + window_rows) + round_up_to_lanes(window_rows));
}

}  // namespace espalier::units::cpu
