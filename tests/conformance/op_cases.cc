#include "tests/conformance/op_cases.h"

#include <algorithm>
#include <numeric>
#include <ostream>

#include "espalier/base/check.h"
#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/program/text.h"
#include "tests/conformance/value_or_die.h"

namespace espalier::conformance {
namespace {

// Tensors over one buffer that lives as long as the Weights.
Weights read_weights(const Json& tensors) {
  std::map<std::string, TensorView> views;
  std::vector<std::shared_ptr<const void>> owners;
  for (const auto& [name, tensor] : tensors.items()) {
    auto values = std::make_shared<std::vector<float>>();
    std::vector<int64_t> shape;
    if (tensor.contains("identity")) {
      const auto size = tensor["identity"].get<int64_t>();
      shape = {size, size};
      values->resize(static_cast<size_t>(size * size));
      for (int64_t i = 0; i < size; ++i) (*values)[static_cast<size_t>(i * (size + 1))] = 1.0f;
    } else {
      shape = tensor["shape"].get<std::vector<int64_t>>();
      *values = tensor["values"].get<std::vector<float>>();
    }
    views[name] = {Encoding::kF32, shape, std::as_bytes(std::span(*values))};
    owners.push_back(values);
  }
  return Weights(std::move(views), std::move(owners));
}

OpCase read_case(const Json& json) {
  OpCase result{.name = json["name"].get<std::string>(),
                .program = value_or_die(program::parse(json["program"].get<std::string>())),
                .weights = read_weights(json["weights"]),
                .calls = {},
                .expected = json["expected"].get<std::vector<float>>(),
                .expected_index = {}};
  for (const Json& call : json["calls"]) {
    result.calls.push_back({call["embeddings"].get<std::vector<float>>(),
                            call["positions"].get<std::vector<int32_t>>(),
                            call["parents"].get<std::vector<int32_t>>(),
                            call["commit"].get<std::vector<int32_t>>()});
  }
  if (json.contains("expected_index")) {
    result.expected_index = json["expected_index"].get<std::vector<int32_t>>();
  }
  return result;
}

}  // namespace

void PrintTo(const OpCase& op_case, std::ostream* out) { *out << op_case.name; }

std::vector<OpCase> golden_op_cases() {
  const std::string path = ESPALIER_SOURCE_DIR "/tests/golden/ops/cases.json";
  const Json cases = value_or_die(parse_json(value_or_die(read_text_file(path)), path));
  std::vector<OpCase> result;
  for (const Json& json : cases) result.push_back(read_case(json));
  CHECK(!result.empty());
  return result;
}

HeadResult run_program_on(units::Unit& unit, const program::Program& program,
                          const Weights& weights, const std::vector<OpCall>& calls,
                          const units::CompileOptions& options) {
  // Any tensor will do as embedding: the calls bring their own embeddings.
  auto executable = value_or_die(
      unit.compile({.functions = {program}}, weights, weights.all().begin()->first, options));
  auto state = value_or_die(executable->create_state(program.kv_rows));
  const auto channels = static_cast<size_t>(program.value(program.outputs.front()).shape.channels);
  HeadResult result;
  for (const OpCall& call : calls) {
    const auto rows = static_cast<int64_t>(call.positions.size());
    std::vector<int32_t> selected(static_cast<size_t>(std::min(rows, program.selected)));
    std::iota(selected.begin(), selected.end(), 0);
    result.values.assign(selected.size() * channels, 0.0f);
    const bool argmax = program.head == program::Head::kArgmax;
    result.indices.assign(argmax ? result.values.size() : 0, 0);
    const std::span<float> values(result.values);
    executable->run(0,
                    {.row_count = rows,
                     .embeddings = call.embeddings,
                     .positions = call.positions,
                     .parents = call.parents,
                     .selected = selected},
                    *state,
                    {.max_values = argmax ? values : std::span<float>(),
                     .max_indices = result.indices,
                     .logits = argmax ? std::span<float>() : values});
    if (!call.commit.empty()) executable->commit(*state, call.commit);
  }
  return result;
}

}  // namespace espalier::conformance
