#include "espalier/models/dspark.h"

#include <algorithm>
#include <memory>

#include "espalier/models/blocks.h"
#include "espalier/models/config.h"
#include "espalier/program/validate.h"

namespace espalier::models {
namespace {

using program::ValueId;

constexpr double kDefaultTheta = 10000.0;
constexpr double kDefaultEpsilon = 1e-6;
constexpr int64_t kMaxTaps = 64;
constexpr int64_t kMaxBlock = program::kMaxWindowRows;

struct Config {
  std::string prefix;  // of all names: "", or "model."
  int64_t hidden = 0;
  int64_t tap_width = 0;
  int64_t layers = 0;
  int64_t block = 0;
  int64_t draft_rows = 0;
  double epsilon = 0;
  AttentionConfig attention;
  FfnConfig ffn;

  std::string layer_prefix(int64_t layer) const {
    return fmt::format("{}layers.{}.", prefix, layer);
  }
};

Error not_dspark(std::string expected, std::string actual) {
  return Error{.what = "this is no drafter that the engine knows",
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Use a DSpark checkpoint, for example of ./dev train drafter."};
}

Result<std::vector<int64_t>> read_target_layers(const Json& flash, const Model& target) {
  const Json* list = json_find(flash, "target_layer_ids");
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > kMaxTaps) {
    return not_dspark(fmt::format("'target_layer_ids', a list of 1 to {} layers", kMaxTaps),
                      list == nullptr ? "none" : "another value");
  }
  std::vector<int64_t> layers;
  for (const Json& id : *list) {
    // Published drafters never tap the last layer, and what they would mean by it differs.
    const bool is_layer = id.is_number_integer() && id >= 0 && id < target.layer_count - 1;
    if (!is_layer || std::ranges::find(layers, id.get<int64_t>()) != layers.end()) {
      return config_error("'target_layer_ids' does not name layers of the target",
                          fmt::format("different ones of 0 to {}", target.layer_count - 2),
                          list->dump());
    }
    layers.push_back(id.get<int64_t>());
  }
  return layers;
}

Status check_kinds(const Json& json) {
  ASSIGN_OR_RETURN(const std::string markov, json_string_or(json, "markov_head_type", "vanilla"));
  if (markov != "vanilla") return not_dspark("'markov_head_type' vanilla", markov);
  ASSIGN_OR_RETURN(const std::string activation, json_string_or(json, "hidden_act", "silu"));
  if (activation != "silu") return not_dspark("'hidden_act' silu", activation);
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    ASSIGN_OR_RETURN(const bool has_bias, json_bool_or(json, key, false));
    if (has_bias) return not_dspark("layers without biases", fmt::format("'{}' true", key));
  }
  const Json* types = json_find(json, "layer_types");
  if (types == nullptr || !types->is_array()) return Ok{};
  for (const Json& type : *types) {
    if (type != "full_attention") return not_dspark("full_attention in 'layer_types'", type.dump());
  }
  return Ok{};
}

Status read_attention(const Json& json, const Weights& weights, const Model& target,
                      Config& config) {
  AttentionConfig& attention = config.attention;
  attention.hidden = config.hidden;
  attention.q_norm = "q_norm";
  attention.k_norm = "k_norm";
  attention.epsilon = config.epsilon;
  ASSIGN_OR_RETURN(attention.heads, dimension(json, "num_attention_heads"));
  ASSIGN_OR_RETURN(attention.kv_heads, dimension_or(json, "num_key_value_heads", attention.heads));
  RETURN_IF_ERROR(expect_divides("num_key_value_heads", attention.kv_heads, "num_attention_heads",
                                 attention.heads));
  ASSIGN_OR_RETURN(attention.head_dim, dimension(json, "head_dim", kMaxHeadDim));
  if (attention.heads * attention.head_dim > kMaxDimension) {
    return config_error("'num_attention_heads' times 'head_dim' is out of range",
                        fmt::format("at most {}", kMaxDimension),
                        fmt::format("{}", attention.heads * attention.head_dim));
  }
  ASSIGN_OR_RETURN(attention.rope, read_rope(json, weights, attention.head_dim, kDefaultTheta,
                                             target.context_length));
  ASSIGN_OR_RETURN(const bool halves, json_bool_or(json, "rope_is_neox_style", true));
  attention.rope.interleaved = !halves;
  return Ok{};
}

ValueId norm(program::Builder& builder, const Config& config, const char* output,
             const std::string& name, ValueId x) {
  return builder.rms_norm(output, x, builder.vector(name + ".weight", config.hidden),
                          config.epsilon);
}

program::Program build_context(const Config& config, int64_t rows, int64_t kv_rows) {
  program::Builder builder(fmt::format("context{}_kv{}", rows, kv_rows), rows, kv_rows,
                           /*selected=*/1, program::Head::kNone);
  const WindowInputs window = window_inputs(builder, config.tap_width, /*conv_kernel=*/0);
  ValueId c = linear_layer(builder, "fused_taps", config.prefix + "fc", window.embeddings,
                           config.tap_width, config.hidden, /*bias=*/false);
  c = norm(builder, config, "context", config.prefix + "hidden_norm", c);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    builder.scope(fmt::format("layers.{}.", layer));
    key_value_block(builder, config.attention, window, fmt::format("layers.{}.kv", layer),
                    config.layer_prefix(layer) + "self_attn.", c);
  }
  return builder.finish();
}

program::Program build_block(const Config& config, int64_t kv_rows) {
  program::Builder builder(fmt::format("block{}_kv{}", config.block, kv_rows), config.block,
                           kv_rows, config.block, program::Head::kLogits);
  const WindowInputs window = window_inputs(builder, config.hidden, /*conv_kernel=*/0);
  ValueId h = window.embeddings;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = config.layer_prefix(layer);
    const std::string scope = fmt::format("layers.{}.", layer);
    builder.scope(scope);
    ValueId x = norm(builder, config, "attention_norm", prefix + "input_layernorm", h);
    x = attention_block(builder, config.attention, window, scope + "kv", prefix + "self_attn.", x);
    h = builder.add("attention_residual", h, x);
    x = norm(builder, config, "ffn_norm", prefix + "post_attention_layernorm", h);
    h = builder.add("ffn_residual", h, gated_ffn(builder, config.ffn, prefix + "mlp.", x));
  }
  head_block(builder, window, h, config.prefix + "norm.weight", config.epsilon, kDraftHeadTensor,
             config.draft_rows, config.hidden);
  return builder.finish();
}

Result<Config> read_config(const Json& json, const Weights& weights, const Model& target,
                           size_t tap_count) {
  Config config;
  if (weights.contains("model.fc.weight")) config.prefix = "model.";
  ASSIGN_OR_RETURN(config.hidden, dimension(json, "hidden_size"));
  if (config.hidden != target.hidden_size) {
    return config_error("the drafter is of another target: 'hidden_size' differs",
                        fmt::format("{}", target.hidden_size), fmt::format("{}", config.hidden));
  }
  config.tap_width = static_cast<int64_t>(tap_count) * target.hidden_size;
  ASSIGN_OR_RETURN(config.layers, dimension(json, "num_hidden_layers", kMaxLayers));
  if (weights.contains(config.layer_prefix(config.layers) + "input_layernorm.weight")) {
    return config_error("'num_hidden_layers' leaves layers out", "all that have tensors",
                        fmt::format("{}", config.layers));
  }
  ASSIGN_OR_RETURN(config.block, dimension(json, "block_size", kMaxBlock));
  ASSIGN_OR_RETURN(const int64_t vocab, dimension(json, "vocab_size"));
  if (vocab != target.vocab_size) {
    return config_error("the drafter is of another target: 'vocab_size' differs",
                        fmt::format("{}", target.vocab_size), fmt::format("{}", vocab));
  }
  ASSIGN_OR_RETURN(config.draft_rows, dimension_or(json, "draft_vocab_size", vocab));
  ASSIGN_OR_RETURN(config.epsilon, epsilon_or(json, "rms_norm_eps", kDefaultEpsilon));
  RETURN_IF_ERROR(read_attention(json, weights, target, config));
  config.ffn = {.hidden = config.hidden, .gate = "gate_proj", .up = "up_proj", .down = "down_proj"};
  ASSIGN_OR_RETURN(config.ffn.width, dimension(json, "intermediate_size"));
  return config;
}

// All but the head, which is the target's.
Status check_weights(const program::Program& program, const Weights& weights) {
  for (const program::Weight& weight : program.weights) {
    if (weight.tensor == kDraftHeadTensor) continue;
    program::Program single;
    single.weights.push_back(weight);
    RETURN_IF_ERROR(program::validate_weights(single, weights));
  }
  return Ok{};
}

}  // namespace

Result<DSpark> make_dspark(const Json& json, const Weights& weights, const Model& target) {
  const Json* flash = json_find(json, "dflash_config");
  const Json& keys = flash == nullptr ? json : *flash;  // DeepSpec has them at the top
  RETURN_IF_ERROR(check_kinds(json));
  DSpark drafter;
  ASSIGN_OR_RETURN(drafter.target_layers, read_target_layers(keys, target));
  ASSIGN_OR_RETURN(Config config, read_config(json, weights, target, drafter.target_layers.size()));
  drafter.prefix = config.prefix;
  drafter.hidden_size = config.hidden;
  drafter.vocab_size = target.vocab_size;
  drafter.draft_rows = config.draft_rows;
  drafter.has_draft_vocabulary = json_find(json, "draft_vocab_size") != nullptr;
  drafter.block_size = config.block;
  ASSIGN_OR_RETURN(drafter.markov_rank, dimension(json, "markov_rank"));
  ASSIGN_OR_RETURN(drafter.mask_token, json_integer(keys, "mask_token_id"));
  if (drafter.mask_token < 0 || drafter.mask_token >= drafter.vocab_size) {
    return config_error("'mask_token_id' is no token of the target",
                        fmt::format("0 to {}", drafter.vocab_size - 1),
                        fmt::format("{}", drafter.mask_token));
  }
  RETURN_IF_ERROR(check_weights(build_context(config, 1, 1), weights));
  RETURN_IF_ERROR(check_weights(build_block(config, config.block), weights));
  const auto shared = std::make_shared<const Config>(std::move(config));
  drafter.build_context = [shared](int64_t rows, int64_t kv_rows) {
    return build_context(*shared, rows, kv_rows);
  };
  drafter.build_block = [shared](int64_t kv_rows) { return build_block(*shared, kv_rows); };
  return drafter;
}

}  // namespace espalier::models
