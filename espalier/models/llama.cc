// The Llama family: Llama 2 and 3.x, SmolLM2, Mistral, Qwen2/2.5, Qwen3 (dense). One architecture
// with small differences, which are the columns of kFamilies. Papers: arXiv 2302.13971 (LLaMA),
// 2310.06825 (Mistral), 2407.10671 (Qwen2), 2505.09388 (Qwen3).
//
//   h = embed(ids)
//   h += attention(rms(h));  h += down(silu(gate(rms(h))) * up(rms(h)))      for each layer
//   logits = rms(h) · headᵀ
//
// Sliding windows: positions closer than the window attend to everything, so the context is cut to
// the window, where full and sliding attention are the same function.
#include <algorithm>
#include <memory>

#include "espalier/models/blocks.h"
#include "espalier/models/config.h"
#include "espalier/models/families.h"

namespace espalier::models {
namespace {

using program::ValueId;

enum class SlidingWindow : uint8_t { kNone, kEveryLayer, kUpperLayersIfUsed };

// What differs inside the family where config.json does not say it.
struct Family {
  const char* model_type;
  bool qkv_bias;    // q, k and v always have biases, o never
  bool head_norms;  // q_norm and k_norm before the rotation
  SlidingWindow sliding;
  int64_t default_context;  // positions
};

constexpr Family kLlama{"llama", false, false, SlidingWindow::kNone, 2048};
constexpr Family kMistral{"mistral", false, false, SlidingWindow::kEveryLayer, 131072};
constexpr Family kQwen2{"qwen2", true, false, SlidingWindow::kUpperLayersIfUsed, 32768};
constexpr Family kQwen3{"qwen3", false, true, SlidingWindow::kUpperLayersIfUsed, 32768};

constexpr double kDefaultTheta = 10000.0;
constexpr double kDefaultEpsilon = 1e-6;
constexpr int64_t kDefaultSlidingWindow = 4096;  // positions; where the key is left out altogether
constexpr int64_t kDefaultFullLayers = 28;       // Qwen's max_window_layers

struct LlamaConfig {
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t context = 0;  // positions
  std::string context_reason;
  double epsilon = 0;
  std::string head_tensor;
  AttentionConfig attention;
  FfnConfig ffn;
};

// The configuration's word where it has one; otherwise whether the checkpoint has the tensor.
Result<bool> has_bias(const Json& json, const std::string& key, const Weights& weights,
                      const std::string& tensor) {
  return json_bool_or(json, key, weights.contains(tensor));
}

Result<bool> any_layer_slides(const Json& json, const LlamaConfig& config, const Family& family) {
  if (family.sliding == SlidingWindow::kNone) return false;
  if (family.sliding == SlidingWindow::kEveryLayer) return true;
  ASSIGN_OR_RETURN(const bool used, json_bool_or(json, "use_sliding_window", false));
  if (!used) return false;
  if (const Json* types = json_find(json, "layer_types"); types != nullptr && types->is_array()) {
    return std::find(types->begin(), types->end(), Json("sliding_attention")) != types->end();
  }
  ASSIGN_OR_RETURN(const int64_t full_layers,
                   json_integer_or(json, "max_window_layers", kDefaultFullLayers));
  return full_layers < config.layers;
}

Status read_context(const Json& json, const Family& family, LlamaConfig& config) {
  ASSIGN_OR_RETURN(config.context, dimension_or(json, "max_position_embeddings",
                                                family.default_context, kMaxContext));
  ASSIGN_OR_RETURN(const bool slides, any_layer_slides(json, config, family));
  if (!slides) return Ok{};
  const int64_t fallback = json.contains("sliding_window") ? kMaxContext : kDefaultSlidingWindow;
  ASSIGN_OR_RETURN(const int64_t window,
                   dimension_or(json, "sliding_window", fallback, kMaxContext));
  if (window < config.context) config.context_reason = "the model's sliding window";
  config.context = std::min(config.context, window);
  return Ok{};
}

Status read_attention(const Json& json, const Weights& weights, const Family& family,
                      LlamaConfig& config) {
  AttentionConfig& attention = config.attention;
  attention.hidden = config.hidden;
  attention.epsilon = config.epsilon;
  ASSIGN_OR_RETURN(attention.heads, dimension(json, "num_attention_heads"));
  ASSIGN_OR_RETURN(attention.kv_heads, dimension_or(json, "num_key_value_heads", attention.heads));
  RETURN_IF_ERROR(expect_divides("num_key_value_heads", attention.kv_heads, "num_attention_heads",
                                 attention.heads));
  if (json_find(json, "head_dim") == nullptr) {
    RETURN_IF_ERROR(
        expect_divides("num_attention_heads", attention.heads, "hidden_size", config.hidden));
  }
  ASSIGN_OR_RETURN(attention.head_dim,
                   dimension_or(json, "head_dim", config.hidden / attention.heads));
  if (attention.heads * attention.head_dim > kMaxDimension) {
    return config_error("'num_attention_heads' times 'head_dim' is out of range",
                        fmt::format("at most {}", kMaxDimension),
                        fmt::format("{}", attention.heads * attention.head_dim));
  }
  const std::string first = layer_prefix(0) + "self_attn.";
  ASSIGN_OR_RETURN(attention.qkv_bias,
                   has_bias(json, "attention_bias", weights, first + "q_proj.bias"));
  ASSIGN_OR_RETURN(attention.out_bias,
                   has_bias(json, "attention_bias", weights, first + "o_proj.bias"));
  if (family.qkv_bias) {
    attention.qkv_bias = true;
    attention.out_bias = false;
  }
  if (family.head_norms) {
    attention.q_norm = "q_norm";
    attention.k_norm = "k_norm";
  }
  ASSIGN_OR_RETURN(attention.rope,
                   read_rope(json, weights, attention.head_dim, kDefaultTheta, config.context));
  return Ok{};
}

Status read_ffn(const Json& json, const Weights& weights, LlamaConfig& config) {
  ASSIGN_OR_RETURN(const std::string activation, json_string_or(json, "hidden_act", "silu"));
  if (activation != "silu" && activation != "swish") {
    return config_error("'hidden_act' is not supported", "silu", activation);
  }
  config.ffn = {.hidden = config.hidden, .gate = "gate_proj", .up = "up_proj", .down = "down_proj"};
  const std::string first = layer_prefix(0) + "mlp.gate_proj";
  ASSIGN_OR_RETURN(const int64_t stored_width, rows_of(weights, first + ".weight", config.hidden));
  ASSIGN_OR_RETURN(config.ffn.width, dimension_or(json, "intermediate_size", stored_width));
  ASSIGN_OR_RETURN(config.ffn.bias, has_bias(json, "mlp_bias", weights, first + ".bias"));
  return Ok{};
}

Result<LlamaConfig> read_config(const Json& json, const Weights& weights, const Family& family) {
  LlamaConfig config;
  ASSIGN_OR_RETURN(config.hidden, dimension(json, "hidden_size"));
  ASSIGN_OR_RETURN(config.vocab, vocab_size(json, weights, config.hidden));
  ASSIGN_OR_RETURN(config.layers, layer_count(json, weights));
  RETURN_IF_ERROR(read_context(json, family, config));
  ASSIGN_OR_RETURN(config.epsilon, epsilon_or(json, "rms_norm_eps", kDefaultEpsilon));
  ASSIGN_OR_RETURN(config.head_tensor, head_tensor(json, weights));
  RETURN_IF_ERROR(read_attention(json, weights, family, config));
  RETURN_IF_ERROR(read_ffn(json, weights, config));
  if (const int64_t limit = config.attention.rope.context_limit;
      limit > 0 && limit < config.context) {
    config.context = limit;
    config.context_reason = "the length up to which the model's rope is static";
  }
  return config;
}

program::Program build(const LlamaConfig& config, const FunctionShape& shape) {
  program::Builder builder = make_builder(shape);
  const WindowInputs window = window_inputs(builder, config.hidden, /*conv_kernel=*/0);
  ValueId h = window.embeddings;
  std::vector<ValueId> streams;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = layer_prefix(layer);
    const std::string scope = fmt::format("layers.{}.", layer);
    builder.scope(scope);
    const auto norm = [&](const char* output, const char* name, ValueId x) {
      const auto weight = builder.vector(prefix + name + ".weight", config.hidden);
      return builder.rms_norm(output, x, weight, config.epsilon);
    };
    ValueId x = norm("attention_norm", "input_layernorm", h);
    x = attention_block(builder, config.attention, window, scope + "kv", prefix + "self_attn.", x);
    h = builder.add("attention_residual", h, x);
    x = norm("ffn_norm", "post_attention_layernorm", h);
    x = gated_ffn(builder, config.ffn, prefix + "mlp.", x);
    h = builder.add("ffn_residual", h, x);
    streams.push_back(h);
  }
  head_block(builder, window, h, "model.norm.weight", config.epsilon, config.head_tensor,
             config.vocab, config.hidden);
  output_taps(builder, shape, streams);
  return builder.finish();
}

PairedRows paired_rows(const LlamaConfig& config) {
  const AttentionConfig& attention = config.attention;
  if (!attention.rope.interleaved) return {};
  PairedRows paired{.tensors = {},
                    .head_rows = attention.head_dim,
                    .rotated_rows = 2 * static_cast<int64_t>(attention.rope.frequencies.size())};
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj"}) {
      paired.tensors.push_back(layer_prefix(layer) + name + ".weight");
      if (attention.qkv_bias) paired.tensors.push_back(layer_prefix(layer) + name + ".bias");
    }
  }
  return paired;
}

Result<Model> make(const Json& json, const Weights& weights, const Family& family) {
  ASSIGN_OR_RETURN(LlamaConfig config, read_config(json, weights, family));
  Model model;
  model.architecture = family.model_type;
  model.vocab_size = config.vocab;
  model.hidden_size = config.hidden;
  model.layer_count = config.layers;
  model.context_length = config.context;
  model.context_reason = config.context_reason;
  model.embedding_tensor = kEmbeddingTensor;
  model.head_tensor = config.head_tensor;
  model.paired_rows = paired_rows(config);
  const auto shared = std::make_shared<const LlamaConfig>(std::move(config));
  model.build = [shared](const FunctionShape& shape) { return build(*shared, shape); };
  return checked_model(std::move(model), weights);
}

}  // namespace

Result<Model> make_llama(const Json& config, const Weights& weights) {
  return make(config, weights, kLlama);
}
Result<Model> make_mistral(const Json& config, const Weights& weights) {
  return make(config, weights, kMistral);
}
Result<Model> make_qwen2(const Json& config, const Weights& weights) {
  return make(config, weights, kQwen2);
}
Result<Model> make_qwen3(const Json& config, const Weights& weights) {
  return make(config, weights, kQwen3);
}

}  // namespace espalier::models
