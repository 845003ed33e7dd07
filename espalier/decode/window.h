// ChainWindows: the windows of plain prefill and decoding, where each row is the parent of the
// next. Parents, selected rows and the committed path of every such window are slices of one list
// of ascending numbers, made once; packing a window therefore neither copies nor allocates.
// Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/decode/target.h"

namespace espalier::decode {

class ChainWindows {
 public:
  explicit ChainWindows(int64_t max_rows);

  int64_t max_rows() const { return static_cast<int64_t>(numbers_.size()) - 1; }
  // `tokens` (1 to max_rows) after the committed text, the head on the last `selected_count` rows.
  Window chain(std::span<const TokenId> tokens, HeadKind head, int64_t selected_count) const;
  // All rows of a chain of `row_count`, as commit() wants them.
  std::span<const int32_t> path(int64_t row_count) const;

 private:
  std::vector<int32_t> numbers_;  // -1, 0, 1, ..., max_rows - 1
};

}  // namespace espalier::decode
