// ReferenceState: fp32 K, V and convolution rows of one sequence, and the rows that the last run
// staged. Owned by the caller, used by one thread at a time; commit() and truncate() do not
// allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/program/program.h"
#include "espalier/units/unit.h"

namespace espalier::units::reference {

// What states are made from: the shapes that all functions share.
struct StateLayout {
  std::vector<program::State> states;  // by StateId; rows of KV states are not read
  int64_t max_window_rows = 0;         // T of the largest function
  int64_t max_kv_rows = 0;             // the largest bucket
  bool has_conv = false;
};

// The rows of one program::State.
struct StateRows {
  std::vector<float> k, v;                // key_value: [kv_rows, channels]
  std::vector<float> staged_k, staged_v;  // key_value: [max_window_rows, channels]
  std::vector<float> conv;                // short_conv: [kernel - 1, channels], the newest row last
  std::vector<float> staged_conv;         // short_conv: [max_window_rows, channels]
};

class ReferenceState : public State {
 public:
  // Fails where kv_rows is not 1..max_kv_rows, or memory is short. `layout` must outlive the state.
  static Result<std::unique_ptr<ReferenceState>> make(const StateLayout& layout, int64_t kv_rows);

  int64_t committed_length() const override { return committed_; }
  int64_t kv_rows() const override { return kv_rows_; }
  int64_t byte_count() const override;

  const StateLayout& layout() const { return *layout_; }
  StateRows& rows(program::StateId id) { return rows_[static_cast<size_t>(id)]; }

  Status resize(int64_t kv_rows);
  Status truncate(int64_t length);
  // The parents of the rows that are about to be staged; commit() checks its path against them.
  void begin_window(std::span<const int32_t> parents);
  void commit(std::span<const int32_t> path);

  std::vector<std::byte> to_bytes() const;
  static Result<std::unique_ptr<ReferenceState>> from_bytes(const StateLayout& layout,
                                                            std::span<const std::byte> bytes);

 private:
  ReferenceState(const StateLayout& layout, int64_t kv_rows)
      : layout_(&layout), kv_rows_(kv_rows) {}
  void allocate();
  // The parts of the rows that mean something, in the order of the exported bytes.
  std::vector<std::span<float>> content();

  const StateLayout* layout_;
  int64_t kv_rows_;
  int64_t committed_ = 0;  // positions
  std::vector<StateRows> rows_;
  std::vector<int32_t> parents_;  // of the last window
};

}  // namespace espalier::units::reference
