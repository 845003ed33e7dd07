// Blocks that several architectures share: the window's inputs, attention, the gated FFN, the head.
// Each is a plain function that adds ops to a Builder; a model file strings them together.
// Stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/models/model.h"
#include "espalier/models/rope.h"
#include "espalier/program/builder.h"

namespace espalier::models {

// Tokens per subrange of the exact argmax: small enough for fp16 index outputs of matrix engines.
inline constexpr int64_t kArgmaxSubrange = 2000;

struct WindowInputs {
  program::ValueId embeddings;  // [T, hidden] f32
  program::ValueId positions;   // [T, 1] i32
  // [T, T] i32, 1 where the column's row is an ancestor or the row itself
  program::ValueId ancestors;
  program::ValueId conv_gather;  // [T, kernel - 1] i32; kNone in models without convolutions
  program::ValueId selected;     // [S, 1] i32
};

// `conv_kernel` 0: a model without convolutions.
WindowInputs window_inputs(program::Builder& builder, int64_t hidden, int64_t conv_kernel);

// A linear layer of the checkpoint: `name`.weight [outputs, inputs] and, where `bias`, `name`.bias
// [outputs].
program::ValueId linear_layer(program::Builder& builder, const std::string& output_name,
                              const std::string& name, program::ValueId x, int64_t inputs,
                              int64_t outputs, bool bias);

struct AttentionConfig {
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  bool qkv_bias = false;
  bool out_bias = false;
  std::string q_norm, k_norm;  // names of norms per head before the rotation; empty: none
  std::string out_proj = "o_proj";
  double epsilon = 0;
  Rope rope;
};

// Grouped-query attention of `layer`, tensors at `prefix` ("model.layers.0.self_attn.").
//   q, k, v = linear(x); norm(q), norm(k) where there are such; rotate q, k;
//   out_proj(attention(q, k, v))
program::ValueId attention_block(program::Builder& builder, const AttentionConfig& config,
                                 const WindowInputs& window, const std::string& state_name,
                                 const std::string& prefix, program::ValueId x);

// K and V alone, of rows that only others attend to.
void key_value_block(program::Builder& builder, const AttentionConfig& config,
                     const WindowInputs& window, const std::string& state_name,
                     const std::string& prefix, program::ValueId x);

struct FfnConfig {
  int64_t hidden = 0;
  int64_t width = 0;
  bool bias = false;
  std::string gate, up, down;  // "gate_proj", "up_proj", "down_proj"
};

// down(silu(gate(x)) * up(x)), tensors at `prefix` ("model.layers.0.mlp.").
program::ValueId gated_ffn(program::Builder& builder, const FfnConfig& config,
                           const std::string& prefix, program::ValueId x);

// Selected rows, final norm, vocabulary: the program's outputs.
void head_block(program::Builder& builder, const WindowInputs& window, program::ValueId x,
                const std::string& norm_tensor, double epsilon, const std::string& head_tensor,
                int64_t vocab, int64_t hidden);

// The taps of a function: streams[i] is the residual stream after layer i. After the head.
void output_taps(program::Builder& builder, const FunctionShape& shape,
                 const std::vector<program::ValueId>& streams);

// A builder named after its shape ("window64_kv512_sel1_argmax").
program::Builder make_builder(const FunctionShape& shape);

// Last step of every make_model: builds a smallest program, checks it and every tensor it reads,
// and lists them in `model.required_tensors`.
Result<Model> checked_model(Model model, const Weights& weights);

}  // namespace espalier::models
