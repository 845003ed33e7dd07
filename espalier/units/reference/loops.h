// The loops that define what every op means: fp32 in, fp64 inside, fp32 out, one naive loop per op
// in one table. Written to be read. A loop computes some items of an op (rows, outputs, heads of
// rows) and nothing that it computes depends on which other items the same call has. Thread-safe
// where items are apart.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/program/program.h"
#include "espalier/units/reference/state.h"
#include "espalier/units/reference/weight_table.h"

namespace espalier::units::reference {

// A value during a call: fp32 or i32, [rows, channels].
struct Tensor {
  float* floats = nullptr;
  int32_t* integers = nullptr;
  int64_t rows = 0;  // live rows of this call
  int64_t channels = 0;

  float* row(int64_t index) const { return floats + index * channels; }
  const int32_t* integer_row(int64_t index) const { return integers + index * channels; }
};

struct Call {
  const program::Op& op;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Matrix* const> weights;
  StateRows* state = nullptr;   // of the op; nullptr where it has none
  int64_t committed = 0;        // positions in the state
  std::span<double> doubles;    // this thread's: [kv_rows + T + channels]
  std::span<float> weight_row;  // this thread's: [columns of the widest weight]
};

struct Loop {
  program::OpKind kind;
  int64_t (*items)(const Call& call);
  void (*run)(const Call& call, int64_t first, int64_t last);
};

const Loop& loop_of(program::OpKind kind);

}  // namespace espalier::units::reference
