// Any bytes as a saved state, on each unit and with each kind of K and V: refused, or a state that is
// saved and read again as what it is, and that a call can go on from.
#include <cstdint>
#include <vector>

#include "espalier/base/check.h"
#include "espalier/units/registry.h"
#include "tests/program/small_program.h"

namespace espalier::units {
namespace {

Weights constant_weights(const program::Program& program) {
  static const std::vector<float> kValues(4096, 0.5f);
  std::map<std::string, TensorView> views;
  for (const program::Weight& weight : program.weights) {
    const bool is_vector = weight.tensor_rows == 1 || weight.columns == 1;
    const int64_t count = weight.tensor_rows * weight.columns;
    views[weight.tensor] = {
        Encoding::kF32,
        is_vector ? std::vector{count} : std::vector{weight.tensor_rows, weight.columns},
        std::as_bytes(std::span(kValues).first(static_cast<size_t>(count)))};
  }
  return Weights(std::move(views), {});
}

std::unique_ptr<Executable> executable(const std::string& unit, int kv_bits) {
  const program::Program program = program::small_program();
  auto compiled = make_unit(unit).value()->compile(
      {{program}}, constant_weights(program), "head.weight", {.threads = 1, .kv_bits = kv_bits});
  return std::move(compiled).value();
}

std::vector<std::unique_ptr<Executable>> executables() {
  std::vector<std::unique_ptr<Executable>> all;
  for (const std::string& name : unit_names()) all.push_back(executable(name, 16));
  all.push_back(executable("cpu", 8));
  return all;
}

// Two rows behind what is committed, and one of them kept.
void go_on(Executable& executable, State& state) {
  constexpr int32_t kRows = 2, kHidden = 12, kSubranges = 3;
  const auto length = static_cast<int32_t>(state.committed_length());
  if (length + kRows > state.kv_rows()) return;
  const std::vector<float> embeddings(kRows * kHidden, 0.25f);
  const std::vector<int32_t> positions = {length, length}, parents = {-1, -1}, selected = {0, 1};
  std::vector<float> values(kRows * kSubranges);
  std::vector<int32_t> indices(kRows * kSubranges);
  executable.run(0,
                 {.row_count = kRows,
                  .embeddings = embeddings,
                  .positions = positions,
                  .parents = parents,
                  .selected = selected},
                 state, {.max_values = values, .max_indices = indices, .logits = {}});
  executable.commit(state, std::vector<int32_t>{1});
  CHECK_EQ(state.committed_length(), length + 1);
}

}  // namespace
}  // namespace espalier::units

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kExecutables = espalier::units::executables();
  for (const auto& executable : kExecutables) {
    const auto state = executable->import_state(std::as_bytes(std::span(data, size)));
    if (!state.ok()) continue;
    CHECK_LE((*state)->committed_length(), (*state)->kv_rows());
    const auto saved = executable->export_state(**state);
    const auto again = executable->import_state(saved);
    CHECK(again.ok());
    CHECK(executable->export_state(**again) == saved);
    espalier::units::go_on(*executable, **state);
  }
  return 0;
}
