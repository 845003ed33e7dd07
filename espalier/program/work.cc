#include "espalier/program/work.h"

#include <algorithm>

#include "espalier/base/check.h"
#include "espalier/program/ops.h"

namespace espalier::program {
namespace {

// Values of window height have as many live rows as the call; heads and pools keep theirs.
int64_t activation_bytes(const Program& program, const Op& op, const WorkOptions& options,
                         int64_t rows) {
  int64_t elements = 0;
  const auto count = [&](ValueId id) {
    const Shape& shape = program.value(id).shape;
    elements += std::min(rows, shape.rows) * shape.channels;
  };
  std::for_each(op.inputs.begin(), op.inputs.end(), count);
  std::for_each(op.outputs.begin(), op.outputs.end(), count);
  return elements * options.activation_element_bytes;
}

int64_t state_bytes(const OpView& view, const WorkOptions& options, int64_t rows) {
  if (view.op.state == kNone) return 0;
  const int64_t row_bytes = view.state().shape.channels * options.kv_element_bytes;
  switch (view.op.kind) {
    case OpKind::kKvWrite:
      return 2 * rows * row_bytes;
    case OpKind::kAttention:
      return 2 * (options.committed + rows) * row_bytes;
    default:  // short_conv: reads the state's rows, stages the window's
      return (view.state().shape.rows + rows) * row_bytes;
  }
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  weight_bytes += other.weight_bytes;
  kv_bytes += other.kv_bytes;
  activation_bytes += other.activation_bytes;
  return *this;
}

int64_t kv_elements_per_position(const Program& program) {
  int64_t elements = 0;
  for (const State& state : program.states) {
    if (state.kind == StateKind::kKeyValue) elements += 2 * state.shape.channels;
  }
  return elements;
}

ProgramWork count_work(const Program& program, const WorkOptions& options) {
  CHECK(options.weight_bytes != nullptr);
  const int64_t rows = options.rows > 0 ? options.rows : program.rows;
  CHECK_LE(rows, program.rows);
  ProgramWork result;
  for (const Op& op : program.ops) {
    const OpView view{program, op};
    Work work;
    work.flops = op_info(op.kind).flops(view, rows, options.committed);
    for (size_t i = 0; i < op.weights.size(); ++i) {
      work.weight_bytes += options.weight_bytes(view.weight(i));
    }
    work.kv_bytes = state_bytes(view, options, rows);
    work.activation_bytes = activation_bytes(program, op, options, rows);
    result.by_kind[op.kind] += work;
    result.total += work;
  }
  return result;
}

}  // namespace espalier::program
