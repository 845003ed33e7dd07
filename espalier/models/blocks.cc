#include "espalier/models/blocks.h"

#include <algorithm>

#include "espalier/models/config.h"
#include "espalier/program/ops.h"
#include "espalier/program/validate.h"

namespace espalier::models {

using program::Builder;
using program::kNone;
using program::ValueId;

WindowInputs window_inputs(Builder& builder, int64_t hidden, int64_t conv_kernel) {
  const int64_t rows = builder.rows();
  WindowInputs window{};
  window.embeddings = builder.input("embeddings", {rows, hidden}, Encoding::kF32);
  window.positions = builder.input("positions", {rows, 1}, Encoding::kI32);
  window.ancestors = builder.input("ancestors", {rows, rows}, Encoding::kI32);
  window.conv_gather = conv_kernel == 0
                           ? kNone
                           : builder.input("conv_gather", {rows, conv_kernel - 1}, Encoding::kI32);
  window.selected = builder.input("selected", {builder.selected(), 1}, Encoding::kI32);
  return window;
}

ValueId linear_layer(Builder& builder, const std::string& output_name, const std::string& name,
                     ValueId x, int64_t inputs, int64_t outputs, bool bias) {
  const auto weight = builder.matrix(name + ".weight", outputs, inputs);
  const auto bias_weight = bias ? builder.vector(name + ".bias", outputs) : kNone;
  return builder.linear(output_name, x, weight, bias_weight);
}

namespace {

ValueId project(Builder& builder, const AttentionConfig& config, const std::string& prefix,
                const std::string& name, int64_t heads, ValueId x) {
  return linear_layer(builder, name, prefix + name + "_proj", x, config.hidden,
                      heads * config.head_dim, config.qkv_bias);
}

ValueId norm_heads(Builder& builder, const AttentionConfig& config, const std::string& prefix,
                   const std::string& name, const std::string& norm, ValueId y) {
  if (norm.empty()) return y;
  const auto weight = builder.vector(prefix + norm + ".weight", config.head_dim);
  return builder.rms_norm(name + "_normed", y, weight, config.epsilon);
}

ValueId rotate(Builder& builder, const AttentionConfig& config, const WindowInputs& window,
               const std::string& name, ValueId y) {
  return builder.rope(name + "_rotated", y, window.positions, config.head_dim,
                      config.rope.interleaved, config.rope.frequencies, config.rope.scale);
}

}  // namespace

ValueId attention_block(Builder& builder, const AttentionConfig& config, const WindowInputs& window,
                        const std::string& state_name, const std::string& prefix, ValueId x) {
  ValueId q = project(builder, config, prefix, "q", config.heads, x);
  ValueId k = project(builder, config, prefix, "k", config.kv_heads, x);
  const ValueId v = project(builder, config, prefix, "v", config.kv_heads, x);
  q = norm_heads(builder, config, prefix, "q", config.q_norm, q);
  k = norm_heads(builder, config, prefix, "k", config.k_norm, k);
  q = rotate(builder, config, window, "q", q);
  k = rotate(builder, config, window, "k", k);

  const auto state = builder.key_value(state_name, config.kv_heads * config.head_dim);
  builder.kv_write(k, v, state);
  const double scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  const ValueId mixed = builder.attention("attention", q, window.ancestors, state, config.heads,
                                          config.kv_heads, config.head_dim, scale);
  return linear_layer(builder, "attention_out", prefix + config.out_proj, mixed,
                      config.heads * config.head_dim, config.hidden, config.out_bias);
}

void key_value_block(Builder& builder, const AttentionConfig& config, const WindowInputs& window,
                     const std::string& state_name, const std::string& prefix, ValueId x) {
  ValueId k = project(builder, config, prefix, "k", config.kv_heads, x);
  const ValueId v = project(builder, config, prefix, "v", config.kv_heads, x);
  k = norm_heads(builder, config, prefix, "k", config.k_norm, k);
  k = rotate(builder, config, window, "k", k);
  builder.kv_write(k, v, builder.key_value(state_name, config.kv_heads * config.head_dim));
}

ValueId gated_ffn(Builder& builder, const FfnConfig& config, const std::string& prefix, ValueId x) {
  const ValueId gate = linear_layer(builder, "gate", prefix + config.gate, x, config.hidden,
                                    config.width, config.bias);
  const ValueId up =
      linear_layer(builder, "up", prefix + config.up, x, config.hidden, config.width, config.bias);
  const ValueId gated = builder.gated_silu("gated", gate, up);
  return linear_layer(builder, "ffn_out", prefix + config.down, gated, config.width, config.hidden,
                      config.bias);
}

void head_block(Builder& builder, const WindowInputs& window, ValueId x,
                const std::string& norm_tensor, double epsilon, const std::string& head_tensor,
                int64_t vocab, int64_t hidden) {
  builder.scope("");
  x = builder.gather_rows("selected_rows", x, window.selected);
  x = builder.rms_norm("final_norm", x, builder.vector(norm_tensor, hidden), epsilon);
  const auto weight = builder.matrix(head_tensor, vocab, hidden);
  if (builder.head() == program::Head::kLogits) {
    builder.head_logits(x, weight);
  } else {
    builder.head_argmax(x, weight, kArgmaxSubrange);
  }
}

void output_taps(Builder& builder, const FunctionShape& shape,
                 const std::vector<ValueId>& streams) {
  for (const int64_t layer : shape.taps) builder.output(streams.at(static_cast<size_t>(layer)));
}

Builder make_builder(const FunctionShape& shape) {
  return Builder(fmt::format("window{}_kv{}_sel{}_{}", shape.rows, shape.kv_rows, shape.selected,
                             program::name_of(shape.head)),
                 shape.rows, shape.kv_rows, shape.selected, shape.head);
}

Result<Model> checked_model(Model model, const Weights& weights) {
  const program::Program smallest =
      model.build({.rows = 1, .kv_rows = 1, .selected = 1, .head = program::Head::kLogits});
  RETURN_IF_ERROR(program::validate_weights(smallest, weights));
  for (const auto& weight : smallest.weights) model.required_tensors.push_back(weight.tensor);
  model.required_tensors.push_back(model.embedding_tensor);
  auto& names = model.required_tensors;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return model;
}

}  // namespace espalier::models
