// Any bytes as a saved state, on each unit: refused, or a state that is saved and read again as
// what it is.
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

std::vector<std::unique_ptr<Executable>> executables() {
  std::vector<std::unique_ptr<Executable>> all;
  for (const std::string& name : unit_names()) {
    const program::Program program = program::small_program();
    auto executable = make_unit(name).value()->compile({{program}}, constant_weights(program),
                                                       "head.weight", {.threads = 1});
    all.push_back(std::move(executable).value());
  }
  return all;
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
  }
  return 0;
}
