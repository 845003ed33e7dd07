#include "bench/model_floor.h"

#include <algorithm>

#include "espalier/measure/statistics.h"
#include "espalier/units/registry.h"

namespace espalier::bench {
namespace {

int thread_count(const engine::Engine& engine) {
  const int asked = engine.options().compile.threads;
  return asked > 0 ? asked : physical_core_count();
}

std::string kernels_of(const engine::Engine& engine) {
  const engine::EngineOptions& options = engine.options();
  if (!options.compile.kernels.empty()) return options.compile.kernels;
  const auto names = units::make_unit(options.unit).value()->kernel_names();
  return names.empty() ? "" : names.front();
}

bool is_float(Encoding encoding) {
  return encoding == Encoding::kF32 || encoding == Encoding::kF16 || encoding == Encoding::kBF16;
}

bool keeps_floats(const engine::Engine& engine) {
  return engine.options().compile.weights == units::WeightMode::kKeep;
}

// What the unit reads for a weight: as stored, or a byte an element where it made int8 of it.
int64_t computed_bytes(const engine::Engine& engine, const program::Weight& weight) {
  const auto tensor = std::ranges::find(engine.tensors(), weight.tensor, &engine::TensorInfo::name);
  CHECK(tensor != engine.tensors().end());
  const bool int8 = is_float(tensor->encoding) && weight.rows > 1 && !keeps_floats(engine);
  return int8 ? weight.rows * weight.columns
              : tensor->byte_count / weight.tensor_rows * weight.rows;
}

bool computes_integers(const engine::Engine& engine) {
  return !keeps_floats(engine) || std::ranges::any_of(engine.tensors(), [](const auto& tensor) {
    return !is_float(tensor.encoding);
  });
}

}  // namespace

Result<std::unique_ptr<ModelFloor>> ModelFloor::create(const engine::Engine& engine) {
  const int threads = thread_count(engine);
  ASSIGN_OR_RETURN(auto read, measure::ReadFloor::create(
                                  threads, engine.executable().memory_use().weight_bytes));
  ASSIGN_OR_RETURN(auto pool, ThreadPool::create(threads));
  return std::unique_ptr<ModelFloor>(new ModelFloor(engine, std::move(read), std::move(pool)));
}

ModelFloor::ModelFloor(const engine::Engine& engine, std::unique_ptr<measure::ReadFloor> read,
                       std::unique_ptr<ThreadPool> pool)
    : engine_(engine),
      program_(engine.program(0, program::Head::kArgmax)),
      peak_(peak_loop(kernels_of(engine), computes_integers(engine))),
      read_(std::move(read)),
      pool_(std::move(pool)) {}

void ModelFloor::measure() {
  read_samples_.push_back(read_->measure());
  if (peak_ != nullptr) products_samples_.push_back(bench::products_per_s(*pool_, *peak_));
}

double ModelFloor::read_bytes_s() const { return measure::summarize(read_samples_).median; }
double ModelFloor::products_s() const { return measure::summarize(products_samples_).median; }

double ModelFloor::call_ms(const CallShape& call) const {
  program::WorkOptions options;
  options.rows = call.rows;
  options.committed = call.committed;
  options.kv_element_bytes = engine_.executable().capabilities().kv_element_bytes;
  options.weight_bytes = [this](const program::Weight& weight) {
    return computed_bytes(engine_, weight);
  };
  auto work = program::count_work(program_, options);
  const program::Work& head = work.by_kind[program::OpKind::kHeadArgmax];
  double bytes = static_cast<double>(work.total.weight_bytes + work.total.kv_bytes);
  if (call.head_rows == 0) bytes -= static_cast<double>(head.weight_bytes);
  const double read_ms = bytes / read_bytes_s() * 1e3;
  if (peak_ == nullptr) return read_ms;
  const double head_products =
      head.flops / 2 / static_cast<double>(call.rows) * static_cast<double>(call.head_rows);
  const double products = work.by_kind[program::OpKind::kLinear].flops / 2 + head_products;
  const int times =
      std::max(1, engine_.options().compile.activation_planes / peak_->planes_at_once);
  return std::max(read_ms, products * times / products_s() * 1e3);
}

}  // namespace espalier::bench
