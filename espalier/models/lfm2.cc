// LFM2 and LFM2.5: short convolutions with a gated input and output, and a few layers of
// grouped-query attention. Report: arXiv 2511.23404.
//
//   h = embed(ids)                   no norm here, whatever the name "embedding_norm" suggests
//   for each layer:
//     h += op(rms(h; operator_norm))
//     h += w2(silu(w1 x) * (w3 x))   x = rms(h; ffn_norm)
//   logits = rms(h; embedding_norm) headᵀ
//
//   op of a conv layer:        B, C, x = thirds of in_proj(u), in this order
//                              out_proj(C * conv(B * x)), causal, depthwise, no activation
//   op of an attention layer:  q and k normed per head before the rotation; out_proj, not o_proj
#include <memory>

#include "espalier/models/blocks.h"
#include "espalier/models/config.h"
#include "espalier/models/families.h"
#include "espalier/program/ops.h"

namespace espalier::models {
namespace {

using program::kNone;
using program::ValueId;

constexpr double kDefaultTheta = 1e6;
constexpr double kDefaultEpsilon = 1e-5;
constexpr int64_t kDefaultContext = 128000;  // positions
constexpr int64_t kDefaultKernel = 3;

enum class LayerKind : uint8_t { kConv, kAttention };

struct Lfm2Config {
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t context = 0;  // positions
  double epsilon = 0;
  std::vector<LayerKind> layers;
  int64_t conv_kernel = 0;
  bool conv_bias = false;
  bool has_conv = false;
  std::string head_tensor;
  AttentionConfig attention;
  FfnConfig ffn;
};

// The same value under an older and a newer name; the first that is there.
Result<int64_t> dimension_of_either(const Json& json, const char* first, const char* second) {
  return dimension(json, json_find(json, first) != nullptr ? first : second);
}

// layer_types: ["conv", "full_attention", ...] (newer exports).
Result<std::vector<LayerKind>> kinds_from_types(const Json& types, int64_t layers) {
  if (!types.is_array() || static_cast<int64_t>(types.size()) != layers) {
    return config_error("'layer_types' has the wrong length", fmt::format("{} entries", layers),
                        fmt::format("{}", types.size()));
  }
  std::vector<LayerKind> kinds;
  for (const Json& type : types) {
    const auto* name = type.get_ptr<const std::string*>();
    if (name == nullptr || (*name != "conv" && *name != "full_attention")) {
      return config_error("'layer_types' has an unknown entry", "\"conv\" or \"full_attention\"",
                          type.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60));
    }
    kinds.push_back(*name == "conv" ? LayerKind::kConv : LayerKind::kAttention);
  }
  return kinds;
}

// full_attn_idxs: [2, 5, ...] (older exports); where there is neither, every layer is attention.
Result<std::vector<LayerKind>> read_layer_kinds(const Json& json, int64_t layers) {
  if (const Json* types = json_find(json, "layer_types")) return kinds_from_types(*types, layers);
  const auto count = static_cast<size_t>(layers);
  const Json* indices = json_find(json, "full_attn_idxs");
  if (indices == nullptr) return std::vector<LayerKind>(count, LayerKind::kAttention);
  std::vector<LayerKind> kinds(count, LayerKind::kConv);
  for (const Json& index : *indices) {
    if (!index.is_number_integer() || index < 0 || index >= layers) {
      return config_error("'full_attn_idxs' has a bad entry",
                          fmt::format("layers 0 to {}", layers - 1),
                          index.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60));
    }
    kinds[index.get<size_t>()] = LayerKind::kAttention;
  }
  return kinds;
}

Status read_attention(const Json& json, const Weights& weights, Lfm2Config& config) {
  AttentionConfig& attention = config.attention;
  attention.hidden = config.hidden;
  attention.epsilon = config.epsilon;
  attention.q_norm = "q_layernorm";
  attention.k_norm = "k_layernorm";
  attention.out_proj = "out_proj";
  ASSIGN_OR_RETURN(attention.heads, dimension_of_either(json, "num_attention_heads", "num_heads"));
  ASSIGN_OR_RETURN(attention.kv_heads, dimension_or(json, "num_key_value_heads", attention.heads));
  RETURN_IF_ERROR(expect_divides("num_key_value_heads", attention.kv_heads, "num_attention_heads",
                                 attention.heads));
  RETURN_IF_ERROR(
      expect_divides("num_attention_heads", attention.heads, "hidden_size", config.hidden));
  attention.head_dim = config.hidden / attention.heads;
  ASSIGN_OR_RETURN(attention.rope,
                   read_rope(json, weights, attention.head_dim, kDefaultTheta, config.context));
  return Ok{};
}

// The FFN's width is the tensor's: block_ff_dim is adjusted by rules that exporters disagree on.
Status read_ffn(const Weights& weights, Lfm2Config& config) {
  config.ffn = {.hidden = config.hidden, .gate = "w1", .up = "w3", .down = "w2"};
  ASSIGN_OR_RETURN(config.ffn.width,
                   rows_of(weights, layer_prefix(0) + "feed_forward.w1.weight", config.hidden));
  return Ok{};
}

Result<Lfm2Config> read_config(const Json& json, const Weights& weights) {
  Lfm2Config config;
  ASSIGN_OR_RETURN(config.hidden, dimension_of_either(json, "hidden_size", "block_dim"));
  ASSIGN_OR_RETURN(config.vocab, vocab_size(json, weights, config.hidden));
  ASSIGN_OR_RETURN(const int64_t layers, layer_count(json, weights));
  ASSIGN_OR_RETURN(config.layers, read_layer_kinds(json, layers));
  ASSIGN_OR_RETURN(config.context,
                   dimension_or(json, "max_position_embeddings", kDefaultContext, kMaxContext));
  ASSIGN_OR_RETURN(const double block_epsilon, epsilon_or(json, "block_norm_eps", kDefaultEpsilon));
  ASSIGN_OR_RETURN(config.epsilon, epsilon_or(json, "norm_eps", block_epsilon));
  ASSIGN_OR_RETURN(config.conv_kernel,
                   dimension_or(json, "conv_L_cache", kDefaultKernel, program::kMaxConvTaps));
  if (config.conv_kernel < 2) {
    return config_error("'conv_L_cache' is out of range",
                        fmt::format("2 to {}", program::kMaxConvTaps), "1");
  }
  ASSIGN_OR_RETURN(config.conv_bias, json_bool_or(json, "conv_bias", false));
  for (const LayerKind kind : config.layers) config.has_conv |= kind == LayerKind::kConv;
  ASSIGN_OR_RETURN(config.head_tensor, head_tensor(json, weights));
  RETURN_IF_ERROR(read_attention(json, weights, config));
  RETURN_IF_ERROR(read_ffn(weights, config));
  if (const int64_t limit = config.attention.rope.context_limit; limit > 0) {
    config.context = std::min(config.context, limit);
  }
  return config;
}

// in_proj is read as three matrices, so that no op has to take a row apart.
ValueId conv_block(program::Builder& builder, const Lfm2Config& config, const WindowInputs& window,
                   const std::string& state_name, const std::string& prefix, ValueId u) {
  const int64_t hidden = config.hidden;
  const auto third = [&](const char* output, int64_t index) {
    const auto weight =
        builder.matrix_rows(prefix + "in_proj.weight", 3 * hidden, index * hidden, hidden, hidden);
    const auto bias = config.conv_bias ? builder.vector_part(prefix + "in_proj.bias", 3 * hidden,
                                                             index * hidden, hidden)
                                       : kNone;
    return builder.linear(output, u, weight, bias);
  };
  const ValueId b = third("conv_b", 0);
  const ValueId c = third("conv_c", 1);
  const ValueId x = third("conv_x", 2);

  const ValueId z = builder.mul("conv_in", b, x);
  const auto state = builder.short_conv_rows(state_name, config.conv_kernel, hidden);
  const auto taps = builder.matrix(prefix + "conv.weight", hidden, config.conv_kernel);
  const auto bias = config.conv_bias ? builder.vector(prefix + "conv.bias", hidden) : kNone;
  const ValueId y = builder.short_conv("conv", z, window.conv_gather, state, taps, bias);
  const ValueId gated = builder.mul("conv_gated", c, y);
  return linear_layer(builder, "conv_out", prefix + "out_proj", gated, hidden, hidden,
                      config.conv_bias);
}

program::Program build(const Lfm2Config& config, const FunctionShape& shape) {
  program::Builder builder = make_builder(shape);
  const WindowInputs window =
      window_inputs(builder, config.hidden, config.has_conv ? config.conv_kernel : 0);
  ValueId h = window.embeddings;
  std::vector<ValueId> streams;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    const std::string prefix = layer_prefix(layer);
    const std::string scope = fmt::format("layers.{}.", layer);
    builder.scope(scope);
    const auto norm = [&](const char* name, ValueId x) {
      const auto weight = builder.vector(prefix + name + ".weight", config.hidden);
      return builder.rms_norm(name, x, weight, config.epsilon);
    };
    ValueId x = norm("operator_norm", h);
    if (config.layers[layer] == LayerKind::kConv) {
      x = conv_block(builder, config, window, scope + "conv", prefix + "conv.", x);
    } else {
      x = attention_block(builder, config.attention, window, scope + "kv", prefix + "self_attn.",
                          x);
    }
    h = builder.add("operator_residual", h, x);
    x = gated_ffn(builder, config.ffn, prefix + "feed_forward.", norm("ffn_norm", h));
    h = builder.add("ffn_residual", h, x);
    streams.push_back(h);
  }
  head_block(builder, window, h, "model.embedding_norm.weight", config.epsilon, config.head_tensor,
             config.vocab, config.hidden);
  output_taps(builder, shape, streams);
  return builder.finish();
}

}  // namespace

Result<Model> make_lfm2(const Json& json, const Weights& weights) {
  ASSIGN_OR_RETURN(Lfm2Config config, read_config(json, weights));
  Model model;
  model.architecture = "lfm2";
  model.vocab_size = config.vocab;
  model.hidden_size = config.hidden;
  model.layer_count = static_cast<int64_t>(config.layers.size());
  model.context_length = config.context;
  model.embedding_tensor = kEmbeddingTensor;
  model.head_tensor = config.head_tensor;
  const auto shared = std::make_shared<const Lfm2Config>(std::move(config));
  model.build = [shared](const FunctionShape& shape) { return build(*shared, shape); };
  return checked_model(std::move(model), weights);
}

}  // namespace espalier::models
