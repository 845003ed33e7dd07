// CpuExecutable: a program set on the cpu unit: packed weights, one plan for each function shape,
// scratch memory and the threads. compile() does everything that can fail or allocate; run() walks
// the steps of a plan.
//
// Owns all of it but the threads, which other executables of its unit may use between its calls.
// Calls must not overlap (units/unit.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/threads.h"
#include "espalier/units/cpu/call.h"
#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/plan.h"
#include "espalier/units/cpu/state.h"
#include "espalier/units/cpu/weight_store.h"
#include "espalier/units/cpu/work_queues.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

// Options of CompileOptions after their checks.
struct Settings {
  const KernelSet* kernels = nullptr;
  int threads = 1;
  int planes = 2;
  int kv_bits = 16;
  FloatMode floats = FloatMode::kInt8Channel;
  PackedCache packed_cache = {};
};

class CpuExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(const program::ProgramSet& programs,
                                                     const Weights& weights,
                                                     const std::string& embedding_tensor,
                                                     std::shared_ptr<ThreadPool> pool,
                                                     const Settings& settings);

  Result<std::unique_ptr<State>> create_state(int64_t kv_rows) override;
  Status resize_state(State& state, int64_t kv_rows) override;
  Status truncate_state(State& state, int64_t length) override;
  void run(size_t function, const CallInputs& inputs, State& state,
           const CallOutputs& outputs) override;
  void commit(State& state, std::span<const int32_t> path) override;
  std::vector<std::byte> export_state(const State& state) const override;
  Result<std::unique_ptr<State>> import_state(std::span<const std::byte> bytes) override;
  int64_t weight_index(std::string_view tensor) const override;
  void read_weight_rows(int64_t weight_index, int64_t first_row, int64_t row_count,
                        std::span<float> out) const override;
  Capabilities capabilities() const override;
  MemoryUse memory_use() const override;
  const PackedReport& packed_report() const override { return weights_->packed_report(); }
  std::vector<std::string> placement_report() const override;

 private:
  // A function: its plans (shared by functions that differ in the bucket alone) and its bucket.
  struct Function {
    std::shared_ptr<const Plan> many_rows, few_rows;
    int64_t kv_rows = 0;
  };

  CpuExecutable(const Settings& settings, StateLayout layout, std::shared_ptr<ThreadPool> pool);
  Status make_plans(const program::ProgramSet& programs);
  Result<std::shared_ptr<const Plan>> plan_of(const program::Program& function, PlanKind kind);
  Status allocate_scratch();
  void check_call(const Function& function, const CallInputs& inputs, const CpuState& state,
                  const CallOutputs& outputs) const;
  const CpuState& own(const State& state) const;
  CpuState& own(State& state) const;

  const Settings settings_;
  const std::shared_ptr<const StateLayout> layout_;
  const std::shared_ptr<ThreadPool> pool_;
  std::unique_ptr<const WeightStore> weights_;
  std::vector<Function> functions_;
  std::vector<program::OpKind> op_kinds_;  // of the first function, once each, for the report
  ActivationSlots slots_;

  // Scratch of a call.
  WindowPaths paths_;
  std::vector<float> arena_;
  std::vector<Activations> activations_;         // [slots]
  std::vector<Activations> thread_activations_;  // [slots, threads], kThreadOperandRows each
  std::vector<float> thread_scratch_;
  int64_t thread_scratch_floats_ = 0;
  WorkQueues queues_;
};

}  // namespace espalier::units::cpu
