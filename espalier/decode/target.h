// Target: the model as decoding sees it: run a window of rows, look at the heads, commit a path.
// Implemented by engine/ over an Executable and its State; by fakes in tests. Knows token ids, not
// strings or tensors. One caller at a time.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::decode {

enum class HeadKind : uint8_t { kNone, kArgmax, kLogits };

// Rows of one call, at most max_rows(). Row r has position committed_length() + depth(r).
struct Window {
  std::span<const TokenId> tokens;    // [rows]
  std::span<const int32_t> parents;   // [rows] window row, smaller than its own; -1: committed text
  std::span<const int32_t> selected;  // rows whose head is wanted, ascending
  HeadKind head = HeadKind::kNone;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual int64_t vocab_size() const = 0;
  virtual int64_t context_length() const = 0;  // positions at most
  // Rows of the next window; the largest before anything is committed.
  virtual int64_t max_rows() const = 0;
  virtual int64_t committed_length() const = 0;  // positions
  // Makes room for `positions` in all (the next bucket); the only call that may allocate.
  virtual Status reserve(int64_t positions) = 0;
  // Computes the rows. Results of selected rows are valid until the next run().
  virtual void run(const Window& window) = 0;
  // With HeadKind::kArgmax: the best token of a selected row, the lowest id on ties.
  virtual TokenId argmax(int64_t selected_index) const = 0;
  // With HeadKind::kLogits: [vocab].
  virtual std::span<const float> logits(int64_t selected_index) const = 0;
  // Hidden states of a row of the last window, for drafters that read them; empty where the model
  // was loaded without such a drafter.
  virtual std::span<const float> taps(int64_t /*row*/) const { return {}; }
  // Keeps these rows of the last window, in order.
  virtual void commit(std::span<const int32_t> path) = 0;
};

}  // namespace espalier::decode
