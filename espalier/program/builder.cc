#include "espalier/program/builder.h"

#include <algorithm>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/program/ops.h"
#include "espalier/program/validate.h"

namespace espalier::program {
namespace {

// Index of `item` in `items`, added at the end where it is not there yet.
template <typename T>
int32_t find_or_add(std::vector<T>& items, T item) {
  const auto found = std::find(items.begin(), items.end(), item);
  if (found != items.end()) return static_cast<int32_t>(found - items.begin());
  items.push_back(std::move(item));
  return static_cast<int32_t>(items.size() - 1);
}

std::vector<WeightId> weight_and_bias(WeightId weight, WeightId bias) {
  return bias == kNone ? std::vector{weight} : std::vector{weight, bias};
}

}  // namespace

Builder::Builder(std::string name, int64_t rows, int64_t kv_rows, int64_t selected, Head head) {
  program_.name = std::move(name);
  program_.rows = rows;
  program_.kv_rows = kv_rows;
  program_.selected = selected;
  program_.head = head;
}

ValueId Builder::input(std::string name, Shape shape, Encoding dtype) {
  const auto id = static_cast<ValueId>(program_.values.size());
  program_.values.push_back({std::move(name), shape, dtype});
  program_.inputs.push_back(id);
  return id;
}

void Builder::output(ValueId value) { program_.outputs.push_back(value); }

WeightId Builder::matrix(const std::string& tensor, int64_t rows, int64_t columns) {
  return matrix_rows(tensor, rows, 0, rows, columns);
}
WeightId Builder::vector(const std::string& tensor, int64_t size) {
  return matrix_rows(tensor, 1, 0, 1, size);
}
WeightId Builder::matrix_rows(const std::string& tensor, int64_t tensor_rows, int64_t first_row,
                              int64_t rows, int64_t columns) {
  return find_or_add(program_.weights, Weight{tensor, first_row, rows, columns, tensor_rows});
}
WeightId Builder::vector_part(const std::string& tensor, int64_t tensor_size, int64_t first,
                              int64_t size) {
  return matrix_rows(tensor, tensor_size, first, size, 1);
}

StateId Builder::key_value(const std::string& name, int64_t channels) {
  return find_or_add(program_.states,
                     State{name, StateKind::kKeyValue, {program_.kv_rows, channels}});
}
StateId Builder::short_conv_rows(const std::string& name, int64_t kernel, int64_t channels) {
  return find_or_add(program_.states, State{name, StateKind::kShortConv, {kernel - 1, channels}});
}

ValueId Builder::linear(std::string name, ValueId x, WeightId weight, WeightId bias) {
  return append_one(
      {.kind = OpKind::kLinear, .inputs = {x}, .weights = weight_and_bias(weight, bias)},
      std::move(name));
}

ValueId Builder::rms_norm(std::string name, ValueId x, WeightId weight, double epsilon) {
  return append_one({.kind = OpKind::kRmsNorm,
                     .inputs = {x},
                     .weights = {weight},
                     .attributes = {{"epsilon", epsilon}}},
                    std::move(name));
}

ValueId Builder::layer_norm(std::string name, ValueId x, WeightId weight, WeightId bias,
                            double epsilon) {
  return append_one({.kind = OpKind::kLayerNorm,
                     .inputs = {x},
                     .weights = {weight, bias},
                     .attributes = {{"epsilon", epsilon}}},
                    std::move(name));
}

ValueId Builder::rope(std::string name, ValueId x, ValueId positions, int64_t head_dim,
                      bool interleaved, const std::vector<double>& frequencies, double scale) {
  return append_one({.kind = OpKind::kRope,
                     .inputs = {x, positions},
                     .attributes = {{"head_dim", head_dim},
                                    {"style", std::string(interleaved ? "interleaved" : "neox")},
                                    {"frequencies", frequencies},
                                    {"scale", scale}}},
                    std::move(name));
}

ValueId Builder::short_conv(std::string name, ValueId z, ValueId conv_gather, StateId state,
                            WeightId weight, WeightId bias) {
  return append_one({.kind = OpKind::kShortConv,
                     .inputs = {z, conv_gather},
                     .weights = weight_and_bias(weight, bias),
                     .state = state},
                    std::move(name));
}

void Builder::kv_write(ValueId k, ValueId v, StateId state) {
  append({.kind = OpKind::kKvWrite, .inputs = {k, v}, .state = state}, {});
}

ValueId Builder::attention(std::string name, ValueId q, ValueId ancestors, StateId state,
                           int64_t heads, int64_t kv_heads, int64_t head_dim, double scale) {
  return append_one({.kind = OpKind::kAttention,
                     .inputs = {q, ancestors},
                     .state = state,
                     .attributes = {{"heads", heads},
                                    {"kv_heads", kv_heads},
                                    {"head_dim", head_dim},
                                    {"scale", scale}}},
                    std::move(name));
}

ValueId Builder::gated_silu(std::string name, ValueId gate, ValueId up) {
  return append_one({.kind = OpKind::kGatedSilu, .inputs = {gate, up}}, std::move(name));
}

ValueId Builder::gelu(std::string name, ValueId x, bool tanh_form) {
  return append_one({.kind = OpKind::kGelu,
                     .inputs = {x},
                     .attributes = {{"approximation", std::string(tanh_form ? "tanh" : "erf")}}},
                    std::move(name));
}

ValueId Builder::add(std::string name, ValueId a, ValueId b) {
  return append_one({.kind = OpKind::kAdd, .inputs = {a, b}}, std::move(name));
}

ValueId Builder::mul(std::string name, ValueId a, ValueId b) {
  return append_one({.kind = OpKind::kMul, .inputs = {a, b}}, std::move(name));
}

ValueId Builder::gather_rows(std::string name, ValueId x, ValueId selected) {
  return append_one({.kind = OpKind::kGatherRows, .inputs = {x, selected}}, std::move(name));
}

void Builder::head_argmax(ValueId x, WeightId weight, int64_t subrange) {
  const auto outputs = append({.kind = OpKind::kHeadArgmax,
                               .inputs = {x},
                               .weights = {weight},
                               .attributes = {{"subrange", subrange}}},
                              {"max", "index"});
  for (const ValueId id : outputs) output(id);
}

void Builder::head_logits(ValueId x, WeightId weight) {
  output(append_one({.kind = OpKind::kHeadLogits, .inputs = {x}, .weights = {weight}}, "logits"));
}

ValueId Builder::mean_pool(std::string name, ValueId x, ValueId row_count) {
  return append_one({.kind = OpKind::kMeanPool, .inputs = {x, row_count}}, std::move(name));
}

Program Builder::finish() {
  const Status status = validate(program_);
  if (!status.ok()) check_failed(__FILE__, __LINE__, status.error().message());
  return std::move(program_);
}

std::vector<ValueId> Builder::append(Op op, std::vector<std::string> output_names) {
  const auto defined = [](int32_t id, size_t count) {
    return id >= 0 && static_cast<size_t>(id) < count;
  };
  for (const ValueId id : op.inputs) CHECK(defined(id, program_.values.size()));
  for (const WeightId id : op.weights) CHECK(defined(id, program_.weights.size()));
  if (op.state != kNone) CHECK(defined(op.state, program_.states.size()));

  const auto outputs = check_op({program_, op});
  if (!outputs.ok()) {
    check_failed(__FILE__, __LINE__,
                 fmt::format("{}: {}", op_info(op.kind).name, outputs.error().message()));
  }
  CHECK_EQ(outputs->size(), output_names.size());
  for (size_t i = 0; i < output_names.size(); ++i) {
    op.outputs.push_back(static_cast<ValueId>(program_.values.size()));
    program_.values.push_back({scope_ + output_names[i], (*outputs)[i].shape, (*outputs)[i].dtype});
  }
  program_.ops.push_back(std::move(op));
  return program_.ops.back().outputs;
}

ValueId Builder::append_one(Op op, std::string name) {
  return append(std::move(op), {std::move(name)}).front();
}

}  // namespace espalier::program
