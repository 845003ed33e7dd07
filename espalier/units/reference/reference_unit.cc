#include "espalier/units/reference/reference_unit.h"

#include <algorithm>
#include <exception>
#include <map>
#include <set>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/base/threads.h"
#include "espalier/program/ops.h"
#include "espalier/program/validate.h"
#include "espalier/units/reference/loops.h"
#include "espalier/units/reference/plan.h"
#include "espalier/units/reference/state.h"
#include "espalier/units/reference/weight_table.h"

namespace espalier::units::reference {
namespace {

using program::Op;
using program::Program;
using program::ValueId;

constexpr size_t kMaxOperands = 2;  // inputs or outputs of an op

// The memory that a call works in; sized at compile for the largest function.
struct Memory {
  std::vector<float> floats;
  std::vector<int32_t> integers;
  struct Thread {
    std::vector<double> doubles;
    std::vector<float> weight_row;
  };
  std::vector<Thread> threads;

  int64_t byte_count() const {
    int64_t bytes = static_cast<int64_t>(4 * (floats.size() + integers.size()));
    for (const Thread& thread : threads) {
      bytes += static_cast<int64_t>(8 * thread.doubles.size() + 4 * thread.weight_row.size());
    }
    return bytes;
  }
};

StateLayout layout_of(const program::ProgramSet& programs) {
  StateLayout layout{.states = programs.functions.front().states};
  for (const Program& function : programs.functions) {
    layout.max_window_rows = std::max(layout.max_window_rows, function.rows);
    layout.max_kv_rows = std::max(layout.max_kv_rows, function.kv_rows);
  }
  for (const auto& state : layout.states) {
    layout.has_conv |= state.kind == program::StateKind::kShortConv;
  }
  return layout;
}

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(program::ProgramSet programs, std::unique_ptr<WeightTable> weights,
                      std::unique_ptr<ThreadPool> pool)
      : programs_(std::move(programs)),
        weights_(std::move(weights)),
        layout_(layout_of(programs_)),
        pool_(std::move(pool)) {
    for (const Program& function : programs_.functions) {
      plans_.push_back(make_plan(function, *weights_));
    }
    allocate_memory(pool_->thread_count());
  }

  Result<std::unique_ptr<State>> create_state(int64_t kv_rows) override {
    ASSIGN_OR_RETURN(std::unique_ptr<State> state, ReferenceState::make(layout_, kv_rows));
    return state;
  }

  Status resize_state(State& state, int64_t kv_rows) override { return own(state).resize(kv_rows); }

  Status truncate_state(State& state, int64_t length) override {
    return own(state).truncate(length);
  }

  void run(size_t function, const CallInputs& inputs, State& state,
           const CallOutputs& outputs) override {
    const Program& program = programs_.functions.at(function);
    const Plan& plan = plans_[function];
    check_inputs(program, inputs);
    ReferenceState& rows = own(state);
    CHECK_LE(rows.committed_length(), program.kv_rows);
    rows.begin_window(inputs.parents);
    fill_inputs(program, plan, inputs);
    pool_->run([&](int thread) {
      for (size_t i = 0; i < program.ops.size(); ++i) {
        run_share(program, plan, i, inputs, rows, thread);
        pool_->barrier();
      }
    });
    copy_outputs(program, plan, inputs, outputs);
  }

  void commit(State& state, std::span<const int32_t> path) override { own(state).commit(path); }

  std::vector<std::byte> export_state(const State& state) const override {
    const auto* rows = dynamic_cast<const ReferenceState*>(&state);
    CHECK(rows != nullptr && &rows->layout() == &layout_);
    return rows->to_bytes();
  }

  Result<std::unique_ptr<State>> import_state(std::span<const std::byte> bytes) override {
    ASSIGN_OR_RETURN(std::unique_ptr<State> state, ReferenceState::from_bytes(layout_, bytes));
    return state;
  }

  int64_t weight_index(std::string_view tensor) const override {
    return weights_->tensor_index(tensor);
  }

  void read_weight_rows(int64_t weight_index, int64_t first_row, int64_t row_count,
                        std::span<float> out) const override {
    weights_->read_rows(weight_index, first_row, row_count, out);
  }

  Capabilities capabilities() const override {
    return {.kv_element_bytes = sizeof(float),
            .kv_write_alignment = 1,
            .max_rows = layout_.max_window_rows};
  }

  MemoryUse memory_use() const override {
    return {.weight_bytes = weights_->cache_bytes(), .scratch_bytes = memory_.byte_count()};
  }

  const PackedReport& packed_report() const override { return packed_report_; }

  std::vector<std::string> placement_report() const override {
    std::map<program::OpKind, int> counts;
    for (const Op& op : programs_.functions.front().ops) ++counts[op.kind];
    std::vector<std::string> lines;
    for (const auto& [kind, count] : counts) {
      lines.push_back(fmt::format("{}: reference, naive fp64 loop, {} per call",
                                  program::op_info(kind).name, count));
    }
    return lines;
  }

 private:
  void allocate_memory(int thread_count) {
    int64_t floats = 0;
    int64_t integers = 0;
    int64_t channels = 0;
    for (size_t i = 0; i < plans_.size(); ++i) {
      floats = std::max(floats, plans_[i].float_count);
      integers = std::max(integers, plans_[i].integer_count);
      for (const auto& value : programs_.functions[i].values) {
        channels = std::max(channels, value.shape.channels);
      }
    }
    memory_.floats.resize(static_cast<size_t>(floats));
    memory_.integers.resize(static_cast<size_t>(integers));
    const auto doubles =
        static_cast<size_t>(layout_.max_kv_rows + layout_.max_window_rows + channels);
    for (int thread = 0; thread < thread_count; ++thread) {
      memory_.threads.push_back(
          {.doubles = std::vector<double>(doubles),
           .weight_row = std::vector<float>(static_cast<size_t>(weights_->max_columns()))});
    }
  }

  ReferenceState& own(State& state) const {
    auto* rows = dynamic_cast<ReferenceState*>(&state);
    CHECK(rows != nullptr && &rows->layout() == &layout_);
    return *rows;
  }

  static void check_inputs(const Program& program, const CallInputs& inputs) {
    const auto rows = static_cast<size_t>(inputs.row_count);
    CHECK_GE(inputs.row_count, 1);
    CHECK_LE(inputs.row_count, program.rows);
    CHECK_EQ(inputs.positions.size(), rows);
    CHECK_EQ(inputs.parents.size(), rows);
    CHECK_LE(static_cast<int64_t>(inputs.selected.size()), program.selected);
    for (size_t r = 0; r < rows; ++r) {
      CHECK_GE(inputs.positions[r], 0);
      CHECK_GE(inputs.parents[r], -1);
      CHECK_LT(inputs.parents[r], static_cast<int32_t>(r));
    }
    for (const int32_t row : inputs.selected) CHECK(row >= 0 && row < inputs.row_count);
  }

  Tensor tensor(const Program& program, const Plan& plan, ValueId id, const CallInputs& inputs) {
    const program::Value& value = program.value(id);
    const ValuePlan& place = plan.values[static_cast<size_t>(id)];
    Tensor tensor;
    tensor.channels = value.shape.channels;
    switch (place.rows) {
      case RowKind::kWindow:
        tensor.rows = inputs.row_count;
        break;
      case RowKind::kSelected:
        tensor.rows = static_cast<int64_t>(inputs.selected.size());
        break;
      case RowKind::kOne:
        tensor.rows = 1;
    }
    if (value.dtype == Encoding::kF32) {
      tensor.floats = memory_.floats.data() + place.offset;
    } else {
      tensor.integers = memory_.integers.data() + place.offset;
    }
    return tensor;
  }

  void fill_inputs(const Program& program, const Plan& plan, const CallInputs& inputs) {
    for (const ValueId id : program.inputs) {
      const Tensor to = tensor(program, plan, id, inputs);
      const std::string& name = program.value(id).name;
      if (name == "embeddings") {
        CHECK_EQ(static_cast<int64_t>(inputs.embeddings.size()), inputs.row_count * to.channels);
        std::copy(inputs.embeddings.begin(), inputs.embeddings.end(), to.floats);
      } else if (name == "positions") {
        std::copy(inputs.positions.begin(), inputs.positions.end(), to.integers);
      } else if (name == "ancestors") {
        fill_ancestors(inputs, to);
      } else if (name == "conv_gather") {
        fill_conv_gather(inputs, to);
      } else if (name == "selected") {
        std::copy(inputs.selected.begin(), inputs.selected.end(), to.integers);
      } else {
        CHECK_EQ(name, std::string("row_count"));
        *to.integers = static_cast<int32_t>(inputs.row_count);
      }
    }
  }

  // mask[r, w] = 1 where w is r or an ancestor of r.
  static void fill_ancestors(const CallInputs& inputs, const Tensor& mask) {
    for (int64_t r = 0; r < inputs.row_count; ++r) {
      int32_t* row = mask.integers + r * mask.channels;
      std::fill_n(row, mask.channels, 0);
      for (int64_t w = r; w >= 0; w = inputs.parents[static_cast<size_t>(w)]) row[w] = 1;
      if (inputs.sees_whole_window) std::fill_n(row, inputs.row_count, 1);
    }
  }

  // gather[r, j - 1] = the j-th ancestor of r in (state rows ++ window rows), which continue each
  // other.
  static void fill_conv_gather(const CallInputs& inputs, const Tensor& gather) {
    const int64_t state_rows = gather.channels;
    for (int64_t r = 0; r < inputs.row_count; ++r) {
      int64_t ancestor = state_rows + r;
      for (int64_t j = 0; j < gather.channels; ++j) {
        ancestor = ancestor >= state_rows
                       ? state_rows + inputs.parents[static_cast<size_t>(ancestor - state_rows)]
                       : ancestor - 1;
        gather.integers[r * gather.channels + j] = static_cast<int32_t>(ancestor);
      }
    }
  }

  // This thread's items of one op: items are dealt out in runs of equal length.
  void run_share(const Program& program, const Plan& plan, size_t index, const CallInputs& inputs,
                 ReferenceState& state, int thread) {
    const Op& op = program.ops[index];
    std::array<Tensor, kMaxOperands> in, out;
    for (size_t i = 0; i < op.inputs.size(); ++i)
      in[i] = tensor(program, plan, op.inputs[i], inputs);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      out[i] = tensor(program, plan, op.outputs[i], inputs);
    }
    Memory::Thread& memory = memory_.threads[static_cast<size_t>(thread)];
    const Call call{.op = op,
                    .inputs = std::span(in).first(op.inputs.size()),
                    .outputs = std::span(out).first(op.outputs.size()),
                    .weights = plan.weights[index],
                    .state = op.state == program::kNone ? nullptr : &state.rows(op.state),
                    .committed = state.committed_length(),
                    .doubles = memory.doubles,
                    .weight_row = memory.weight_row};
    const Loop& loop = loop_of(op.kind);
    const int64_t items = loop.items(call);
    const int64_t threads = pool_->thread_count();
    loop.run(call, items * thread / threads, items * (thread + 1) / threads);
  }

  void copy_outputs(const Program& program, const Plan& plan, const CallInputs& inputs,
                    const CallOutputs& outputs) {
    const auto copy = [&](size_t index, const auto& span, const auto* from) {
      const program::Value& value = program.value(program.outputs[index]);
      const auto count = inputs.selected.size() * static_cast<size_t>(value.shape.channels);
      CHECK_GE(span.size(), count);
      std::copy_n(from, count, span.begin());
    };
    const auto result = [&](size_t index) {
      return tensor(program, plan, program.outputs[index], inputs);
    };
    if (program.head == program::Head::kLogits) {
      copy(0, outputs.logits, result(0).floats);
    } else if (program.head == program::Head::kArgmax) {
      copy(0, outputs.max_values, result(0).floats);
      copy(1, outputs.max_indices, result(1).integers);
    }
    copy_taps(program, plan, inputs, outputs);
  }

  void copy_taps(const Program& program, const Plan& plan, const CallInputs& inputs,
                 const CallOutputs& outputs) {
    int64_t width = 0;
    for (const ValueId id : program.taps()) width += program.value(id).shape.channels;
    CHECK_GE(static_cast<int64_t>(outputs.taps.size()), inputs.row_count * width);
    int64_t first = 0;
    for (const ValueId id : program.taps()) {
      const Tensor from = tensor(program, plan, id, inputs);
      for (int64_t row = 0; row < inputs.row_count; ++row) {
        std::copy_n(from.floats + row * from.channels, from.channels,
                    outputs.taps.data() + row * width + first);
      }
      first += from.channels;
    }
  }

  const program::ProgramSet programs_;
  const std::unique_ptr<WeightTable> weights_;
  const StateLayout layout_;
  std::vector<Plan> plans_;  // by function
  Memory memory_;
  PackedReport packed_report_;  // weights are read as they are stored
  const std::unique_ptr<ThreadPool> pool_;
};

}  // namespace

Result<std::unique_ptr<Executable>> ReferenceUnit::compile(program::ProgramSet programs,
                                                           const Weights& weights,
                                                           const std::string& embedding_tensor,
                                                           const CompileOptions& options) {
  RETURN_IF_ERROR(program::validate(programs));
  RETURN_IF_ERROR(check_kv_rows(programs));
  if (!options.kernels.empty() && options.kernels != "naive") {
    return Error{
        .what = fmt::format("kernel set '{}' is unknown to the reference unit", options.kernels),
        .expected = "naive",
        .actual = options.kernels,
        .fix = "Leave the choice out."};
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Error{.what = "number of threads is out of range",
                 .expected = fmt::format("0 (physical cores) to {}", kMaxThreads),
                 .actual = fmt::format("{}", options.threads),
                 .fix = "Choose another number."};
  }
  const int threads = options.threads > 0 ? options.threads : physical_core_count();
  try {
    ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool, ThreadPool::create(threads));
    ASSIGN_OR_RETURN(std::unique_ptr<WeightTable> table,
                     WeightTable::make(programs, weights, embedding_tensor));
    return std::unique_ptr<Executable>(
        new ReferenceExecutable(std::move(programs), std::move(table), std::move(pool)));
  } catch (const std::exception&) {  // bad_alloc, length_error
    return Error{.what = "no memory for the weights as fp32",
                 .expected = {},
                 .actual = {},
                 .fix = "Use a smaller model, or the cpu unit."};
  }
}

}  // namespace espalier::units::reference
