#include "espalier/units/cpu/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/program/ops.h"
#include "espalier/program/validate.h"

namespace espalier::units::cpu {

using program::Op;
using program::OpKind;
using program::Program;
using program::ProgramSet;

namespace {

Status check_limits(const ProgramSet& programs) {
  if (programs.functions.empty()) {
    return Error{.what = "the program set is empty",
                 .expected = "at least one function",
                 .actual = "none",
                 .fix = "Build the programs of a model."};
  }
  RETURN_IF_ERROR(check_kv_rows(programs));
  for (const Program& function : programs.functions) {
    const bool has_head = std::any_of(function.ops.begin(), function.ops.end(), [](const Op& op) {
      return op.kind == OpKind::kHeadArgmax || op.kind == OpKind::kHeadLogits;
    });
    if (!has_head && function.head != program::Head::kNone) {
      return Error{.what = fmt::format("function '{}' has no head", function.name),
                   .expected = "head_argmax or head_logits",
                   .actual = "other outputs",
                   .fix = "Run it on the reference unit."};
    }
  }
  return Ok{};
}

// How the channels of each state divide into heads is known to the attention ops alone.
Result<StateLayout> make_layout(const ProgramSet& programs) {
  StateLayout layout;
  const Program& first = programs.functions.front();
  for (const program::State& state : first.states) {
    layout.states.push_back({.kind = state.kind,
                             .channels = state.shape.channels,
                             .kv_heads = 1,
                             .head_dim = state.shape.channels,
                             .rows = 0});
    if (state.kind == program::StateKind::kShortConv) {
      StateShape& shape = layout.states.back();
      shape.kv_heads = shape.head_dim = 0;
      shape.rows = state.shape.rows;
    }
  }
  std::vector<bool> divided(layout.states.size());
  std::set<int64_t> buckets;
  for (const Program& function : programs.functions) {
    buckets.insert(function.kv_rows);
    layout.window_rows = std::max(layout.window_rows, function.rows);
    for (const Op& op : function.ops) {
      if (op.kind != OpKind::kAttention) continue;
      const auto id = static_cast<size_t>(op.state);
      StateShape& shape = layout.states[id];
      const int64_t head_dim = op.integer("head_dim");
      if (divided[id] && shape.head_dim != head_dim) {
        return Error{.what = fmt::format("two attention ops divide state {} differently", op.state),
                     .expected = fmt::format("heads of {} channels", shape.head_dim),
                     .actual = fmt::format("heads of {} channels", head_dim),
                     .fix = "Give each its own state."};
      }
      divided[id] = true;
      shape.head_dim = head_dim;
      shape.kv_heads = op.integer("kv_heads");
    }
  }
  layout.buckets.assign(buckets.begin(), buckets.end());
  return layout;
}

// A head is one K-block of a product.
Status check_kv_bits(const StateLayout& layout) {
  if (layout.kv_bits == 16) return Ok{};
  for (const StateShape& shape : layout.states) {
    if (shape.head_dim <= kBlockElements) continue;
    return Error{.what = "K and V of this model cannot be kept in 8 bits",
                 .expected = fmt::format("heads of at most {} channels", kBlockElements),
                 .actual = std::to_string(shape.head_dim),
                 .fix = "Keep them in 16 bits: --kv 16."};
  }
  return Ok{};
}

// Whether two functions need the same steps: everything but the name and the bucket is equal.
bool same_but_for_bucket(const Program& a, const Program& b) {
  return a.rows == b.rows && a.selected == b.selected && a.head == b.head && a.values == b.values &&
         a.inputs == b.inputs && a.outputs == b.outputs && a.weights == b.weights && a.ops == b.ops;
}

}  // namespace

CpuExecutable::CpuExecutable(const Settings& settings, StateLayout layout,
                             std::shared_ptr<ThreadPool> pool)
    : settings_(settings),
      layout_(std::make_shared<const StateLayout>(std::move(layout))),
      pool_(std::move(pool)),
      paths_(layout_->window_rows) {}

Result<std::unique_ptr<Executable>> CpuExecutable::compile(const ProgramSet& programs,
                                                           const Weights& weights,
                                                           const std::string& embedding_tensor,
                                                           std::shared_ptr<ThreadPool> pool,
                                                           const Settings& settings) try {
  RETURN_IF_ERROR(check_limits(programs));
  RETURN_IF_ERROR(program::validate(programs));
  ASSIGN_OR_RETURN(StateLayout layout, make_layout(programs));
  layout.kv_bits = settings.kv_bits;
  RETURN_IF_ERROR(check_kv_bits(layout));
  std::unique_ptr<CpuExecutable> executable(
      new CpuExecutable(settings, std::move(layout), std::move(pool)));
  ASSIGN_OR_RETURN(executable->weights_,
                   WeightStore::build(programs, weights, embedding_tensor,
                                      {.floats = settings.floats, .cache = settings.packed_cache},
                                      *executable->pool_));
  RETURN_IF_ERROR(executable->make_plans(programs));
  RETURN_IF_ERROR(executable->allocate_scratch());
  return std::unique_ptr<Executable>(std::move(executable));
} catch (const std::bad_alloc&) {
  return out_of_memory_error("no memory for the plans and the scratch of a model", {},
                             "Choose a smaller window or context.");
}

Status CpuExecutable::make_plans(const ProgramSet& programs) {
  for (const Program& function : programs.functions) {
    const auto known = std::find_if(
        programs.functions.begin(), programs.functions.end(), [&](const Program& other) {
          return &other == &function || same_but_for_bucket(other, function);
        });
    const auto index = static_cast<size_t>(known - programs.functions.begin());
    if (index < functions_.size()) {
      functions_.push_back(functions_[index]);
      functions_.back().kv_rows = function.kv_rows;
      continue;
    }
    ASSIGN_OR_RETURN(auto many_rows, plan_of(function, PlanKind::kManyRows));
    ASSIGN_OR_RETURN(auto few_rows, plan_of(function, PlanKind::kFewRows));
    functions_.push_back({std::move(many_rows), std::move(few_rows), function.kv_rows});
  }
  std::set<OpKind> kinds;
  for (const Op& op : programs.functions.front().ops) {
    if (kinds.insert(op.kind).second) op_kinds_.push_back(op.kind);
  }
  return Ok{};
}

Result<std::shared_ptr<const Plan>> CpuExecutable::plan_of(const Program& function, PlanKind kind) {
  ASSIGN_OR_RETURN(Plan plan, make_plan(function, *weights_, layout_->buckets.back(),
                                        settings_.planes, settings_.kv_bits, kind, slots_));
  return std::make_shared<const Plan>(std::move(plan));
}

Status CpuExecutable::allocate_scratch() {
  int64_t arena_floats = 0;
  size_t phases = 0;
  for (const Function& function : functions_) {
    for (const Plan* plan : {function.many_rows.get(), function.few_rows.get()}) {
      arena_floats = std::max(arena_floats, plan->arena_floats);
      thread_scratch_floats_ = std::max(thread_scratch_floats_, plan->thread_scratch_floats);
      for (const Interval& interval : plan->intervals) phases = std::max(phases, interval.size());
    }
  }
  queues_ = WorkQueues(phases, pool_->thread_count());
  arena_.resize(static_cast<size_t>(arena_floats));
  thread_scratch_.resize(static_cast<size_t>(thread_scratch_floats_ * pool_->thread_count()));
  std::vector<ActivationSlots::Kind> kinds(slots_.all().size());
  for (const auto& [kind, slot] : slots_.all()) kinds[slot] = kind;
  for (const auto& [columns, planes, use] : kinds) {
    const bool shared =
        use == ActivationSlots::Use::kLinear;  // attention uses those of threads alone
    ASSIGN_OR_RETURN(Activations activations,
                     Activations::create(shared ? layout_->window_rows : 1, columns, planes));
    activations_.push_back(std::move(activations));
    for (int thread = 0; thread < pool_->thread_count(); ++thread) {
      ASSIGN_OR_RETURN(Activations own, Activations::create(kThreadOperandRows, columns, planes));
      thread_activations_.push_back(std::move(own));
    }
  }
  return Ok{};
}

const CpuState& CpuExecutable::own(const State& state) const {
  const auto* cpu_state = dynamic_cast<const CpuState*>(&state);
  CHECK(cpu_state != nullptr);
  CHECK(&cpu_state->layout() == layout_.get());
  return *cpu_state;
}

CpuState& CpuExecutable::own(State& state) const {
  return const_cast<CpuState&>(own(std::as_const(state)));
}

Result<std::unique_ptr<State>> CpuExecutable::create_state(int64_t kv_rows) {
  ASSIGN_OR_RETURN(std::unique_ptr<CpuState> state, CpuState::create(layout_, kv_rows));
  return std::unique_ptr<State>(std::move(state));
}

Status CpuExecutable::resize_state(State& state, int64_t kv_rows) {
  return own(state).resize(kv_rows);
}

Status CpuExecutable::truncate_state(State& state, int64_t length) {
  return own(state).truncate(length);
}

void CpuExecutable::check_call(const Function& function, const CallInputs& inputs,
                               const CpuState& state, const CallOutputs& outputs) const {
  const Plan& plan = *function.many_rows;
  const auto rows = static_cast<size_t>(inputs.row_count), selected = inputs.selected.size();
  CHECK_GE(inputs.row_count, 1);
  CHECK_LE(inputs.row_count, plan.rows);
  CHECK_EQ(inputs.embeddings.size(), rows * static_cast<size_t>(plan.hidden));
  CHECK_EQ(inputs.positions.size(), rows);
  CHECK_EQ(inputs.parents.size(), rows);
  CHECK_LE(selected, static_cast<size_t>(plan.selected));
  for (const int32_t row : inputs.selected) CHECK(row >= 0 && row < inputs.row_count);
  CHECK_EQ(state.kv_rows(), function.kv_rows);
  CHECK_GE(outputs.taps.size(), rows * static_cast<size_t>(plan.tapped));
  if (plan.head == program::Head::kLogits) {
    CHECK_GE(outputs.logits.size(), selected * static_cast<size_t>(plan.vocab));
  } else if (plan.head == program::Head::kArgmax) {
    CHECK_GE(outputs.max_values.size(), selected * static_cast<size_t>(plan.subranges));
    CHECK_GE(outputs.max_indices.size(), selected * static_cast<size_t>(plan.subranges));
  }
}

void CpuExecutable::run(size_t function_index, const CallInputs& inputs, State& state,
                        const CallOutputs& outputs) {
  CHECK_LT(function_index, functions_.size());
  const Function& function = functions_[function_index];
  CpuState& cpu_state = own(state);
  check_call(function, inputs, cpu_state, outputs);
  paths_.assign(inputs.parents, inputs.sees_whole_window);
  cpu_state.stage_rows(inputs.parents);

  const bool few_rows = inputs.row_count <= kFewRows && inputs.selected.size() <= size_t{kFewRows};
  const Plan& plan = few_rows ? *function.few_rows : *function.many_rows;
  const Call call{.kernels = *settings_.kernels,
                  .arena = arena_.data(),
                  .activations = activations_,
                  .thread_activations = thread_activations_,
                  .thread_count = pool_->thread_count(),
                  .few_rows = few_rows,
                  .thread_scratch = thread_scratch_,
                  .thread_scratch_floats = thread_scratch_floats_,
                  .paths = paths_,
                  .inputs = inputs,
                  .outputs = outputs,
                  .state = cpu_state};
  queues_.run(plan.intervals, call, *pool_);
}

void CpuExecutable::commit(State& state, std::span<const int32_t> path) { own(state).commit(path); }

std::vector<std::byte> CpuExecutable::export_state(const State& state) const {
  return own(state).to_bytes();
}

Result<std::unique_ptr<State>> CpuExecutable::import_state(std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<CpuState> state, CpuState::from_bytes(layout_, bytes));
  return std::unique_ptr<State>(std::move(state));
}

int64_t CpuExecutable::weight_index(std::string_view tensor) const {
  return weights_->tensor_index(tensor);
}

void CpuExecutable::read_weight_rows(int64_t weight_index, int64_t first_row, int64_t row_count,
                                     std::span<float> out) const {
  weights_->read_rows(weight_index, first_row, row_count, out);
}

Capabilities CpuExecutable::capabilities() const {
  int64_t scale_bytes = 0;
  for (const StateShape& shape : layout_->states) {
    if (settings_.kv_bits == 8) scale_bytes += Int8KeyValueRows::scale_bytes(shape);
  }
  return {.kv_element_bytes = settings_.kv_bits / 8,
          .kv_scale_bytes = scale_bytes,
          .kv_write_alignment = 1,
          .max_rows = layout_->window_rows};
}

MemoryUse CpuExecutable::memory_use() const {
  auto scratch_bytes =
      static_cast<int64_t>((arena_.size() + thread_scratch_.size()) * sizeof(float)) +
      queues_.byte_count();
  for (const auto* operands : {&activations_, &thread_activations_}) {
    for (const Activations& activations : *operands) scratch_bytes += activations.byte_count();
  }
  return {.weight_bytes = weights_->byte_count(), .scratch_bytes = scratch_bytes};
}

std::vector<std::string> CpuExecutable::placement_report() const {
  std::vector<std::string> lines;
  for (const OpKind kind : op_kinds_) {
    std::string line =
        fmt::format("{}: cpu, {} kernels, {} thread{}", program::op_info(kind).name,
                    settings_.kernels->name, settings_.threads, settings_.threads == 1 ? "" : "s");
    if (kind == OpKind::kLinear) {
      line += fmt::format(", activations in {} plane{}, weights {}", settings_.planes,
                          settings_.planes == 1 ? "" : "s", weights_->summary());
    }
    if (kind == OpKind::kAttention) line += settings_.kv_bits == 8 ? ", int8 KV" : ", fp16 KV";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace espalier::units::cpu
