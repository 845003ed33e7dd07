// Call: everything that the steps of a plan read and write during one run(). Threads share it
// read-only; what they write lies behind the pointers, each thread its own share. The paths of the
// window's rows are prepared once a call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/linear.h"
#include "espalier/units/cpu/state.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

// The ancestors of every window row, from parents: what attention walks and short convolutions look
// back to.
class WindowPaths {
 public:
  explicit WindowPaths(int64_t max_rows);
  // `whole`: every row's path is all rows. No allocation.
  void assign(std::span<const int32_t> parents, bool whole);

  // Window rows from the child of the committed text down to the row itself.
  std::span<const int32_t> of(int64_t row) const {
    return {rows_.data() + row * max_rows_,
            static_cast<size_t>(lengths_[static_cast<size_t>(row)])};
  }

 private:
  int64_t max_rows_;
  std::vector<int32_t> rows_;     // [max_rows, max_rows]
  std::vector<int32_t> lengths_;  // [max_rows]
};

// Which rows a value has: those of the window, those selected for the head, or one (a pooled row).
enum class RowSet : uint8_t { kWindow, kSelected, kOne };

// The fp32 rows of a value in the arena.
struct Buffer {
  int64_t offset = 0;  // floats
  int64_t stride = 0;  // floats, a multiple of 16, so that kernels may write whole panels
  int64_t channels = 0;
  RowSet rows = RowSet::kWindow;
};

struct Call {
  const KernelSet& kernels;
  float* arena;
  std::span<Activations> activations;         // quantised operands [slots]
  std::span<Activations> thread_activations;  // [slots, threads]
  int thread_count;
  bool few_rows;                    // each thread quantises for itself
  std::span<float> thread_scratch;  // [threads, thread_scratch_floats]
  int64_t thread_scratch_floats;
  const WindowPaths& paths;
  const CallInputs& inputs;
  const CallOutputs& outputs;
  CpuState& state;

  int64_t row_count(RowSet rows) const {
    if (rows == RowSet::kOne) return 1;
    return rows == RowSet::kWindow ? inputs.row_count
                                   : static_cast<int64_t>(inputs.selected.size());
  }
  float* row(const Buffer& buffer, int64_t index) const {
    return arena + buffer.offset + index * buffer.stride;
  }
  Activations& thread_operand(size_t slot, int thread) const {
    return thread_activations[slot * static_cast<size_t>(thread_count) +
                              static_cast<size_t>(thread)];
  }
  Activations& operand(size_t slot, int thread) const {
    return few_rows ? thread_operand(slot, thread) : activations[slot];
  }
  float* scratch(int thread) const {
    return thread_scratch.data() + thread * thread_scratch_floats;
  }
};

}  // namespace espalier::units::cpu
