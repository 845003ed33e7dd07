#include "espalier/formats/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "espalier/formats/gguf_names.h"

namespace espalier::formats {
namespace {

enum class Kind { kInteger, kNumber, kPerLayer };

// A key that begins with a dot has the architecture in front of it.
struct Key {
  std::string_view gguf;
  std::string_view config;
  Kind kind;
};

constexpr std::array kModelKeys = {
    Key{".vocab_size", "vocab_size", Kind::kInteger},
    Key{".context_length", "max_position_embeddings", Kind::kInteger},
    Key{".embedding_length", "hidden_size", Kind::kInteger},
    Key{".block_count", "num_hidden_layers", Kind::kInteger},
    Key{".feed_forward_length", "intermediate_size", Kind::kPerLayer},
    Key{".attention.head_count", "num_attention_heads", Kind::kPerLayer},
    Key{".attention.head_count_kv", "num_key_value_heads", Kind::kPerLayer},
    Key{".attention.key_length", "head_dim", Kind::kInteger},
    Key{".attention.sliding_window", "sliding_window", Kind::kInteger},
    Key{".attention.layer_norm_rms_epsilon", "rms_norm_eps", Kind::kNumber},
    Key{".attention.layer_norm_rms_epsilon", "norm_eps", Kind::kNumber},  // LFM2's name
    Key{".rope.freq_base", "rope_theta", Kind::kNumber},
    Key{".shortconv.l_cache", "conv_L_cache", Kind::kInteger},
    Key{"tokenizer.ggml.bos_token_id", "bos_token_id", Kind::kInteger},
    Key{"tokenizer.ggml.eos_token_id", "eos_token_id", Kind::kInteger},
    Key{"tokenizer.ggml.padding_token_id", "pad_token_id", Kind::kInteger},
};

constexpr std::array kGenerationKeys = {
    Key{"tokenizer.ggml.bos_token_id", "bos_token_id", Kind::kInteger},
    Key{"tokenizer.ggml.padding_token_id", "pad_token_id", Kind::kInteger},
    Key{"general.sampling.temp", "temperature", Kind::kNumber},
    Key{"general.sampling.top_k", "top_k", Kind::kInteger},
    Key{"general.sampling.top_p", "top_p", Kind::kNumber},
    Key{"general.sampling.min_p", "min_p", Kind::kNumber},
    Key{"general.sampling.penalty_repeat", "repetition_penalty", Kind::kNumber},
};

constexpr std::array kYarnKeys = {
    Key{".rope.scaling.original_context_length", "original_max_position_embeddings",
        Kind::kInteger},
    Key{".rope.scaling.yarn_beta_fast", "beta_fast", Kind::kNumber},
    Key{".rope.scaling.yarn_beta_slow", "beta_slow", Kind::kNumber},
};

constexpr std::array kEndOfTextKeys = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};

// One value for all layers, or an array of them: the one value of all layers that have any.
Result<Json> per_layer_value(const GgufMetadata& metadata, const std::string& key) {
  if (!metadata.is_array(key)) {
    ASSIGN_OR_RETURN(const int64_t value, metadata.integer(key));
    return Json(value);
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, metadata.integers(key));
  const int64_t most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  for (const int64_t value : values) {
    if (value == 0 || value == most) continue;
    return Error{.what = fmt::format("metadata '{}' differs between layers", key),
                 .expected = "one value for all layers that have any",
                 .actual = fmt::format("{} and {}", value, most),
                 .fix = "Models of this kind are not supported."};
  }
  return Json(most);
}

Result<Json> value_of(const GgufMetadata& metadata, const std::string& key, Kind kind) {
  if (kind == Kind::kPerLayer) return per_layer_value(metadata, key);
  if (kind == Kind::kInteger) {
    ASSIGN_OR_RETURN(const int64_t value, metadata.integer(key));
    return Json(value);
  }
  ASSIGN_OR_RETURN(const double value, metadata.number(key));
  return Json(value);
}

Status copy_keys(const GgufMetadata& metadata, const std::string& architecture,
                 std::span<const Key> keys, Json& config) {
  for (const Key& row : keys) {
    const std::string key = (row.gguf[0] == '.' ? architecture : "") + std::string(row.gguf);
    if (!metadata.contains(key)) continue;
    ASSIGN_OR_RETURN(config[row.config], value_of(metadata, key, row.kind));
  }
  return Ok{};
}

// rope_scaling, from the factor and the type of scaling, which is linear where the file does not
// say.
Status add_rope_scaling(const GgufMetadata& metadata, const std::string& architecture,
                        Json& config) {
  const std::string prefix = architecture + ".rope.";
  ASSIGN_OR_RETURN(const double old_factor, metadata.number_or(prefix + "scale_linear", 1.0));
  ASSIGN_OR_RETURN(const double factor, metadata.number_or(prefix + "scaling.factor", old_factor));
  ASSIGN_OR_RETURN(const std::string type, metadata.string_or(prefix + "scaling.type", "linear"));
  if (type == "none" || (type == "linear" && (factor == 0.0 || factor == 1.0))) return Ok{};
  Json scaling = {{"rope_type", type}, {"factor", factor}};
  RETURN_IF_ERROR(copy_keys(metadata, architecture, kYarnKeys, scaling));
  // GGUF has a correction of YaRN's own factor for attention, transformers has the product.
  ASSIGN_OR_RETURN(const double correction,
                   metadata.number_or(prefix + "scaling.attn_factor", 1.0));
  if (correction != 1.0) {
    scaling["attention_factor"] = correction * (0.1 * std::log(std::max(factor, 1.0)) + 1.0);
  }
  config["rope_scaling"] = std::move(scaling);
  return Ok{};
}

// 0 where the file does not say enough.
Result<int64_t> head_dim_of(const Json& config) {
  ASSIGN_OR_RETURN(const int64_t heads, json_integer_or(config, "num_attention_heads", 0));
  ASSIGN_OR_RETURN(const int64_t hidden, json_integer_or(config, "hidden_size", 0));
  return json_integer_or(config, "head_dim", heads > 0 ? hidden / heads : 0);
}

// The part of a head that is rotated, where it is not all of it. config.json has no such key:
// transformers' Llamas leave partial_rotary_factor alone.
Status add_rotary_dim(const GgufMetadata& metadata, const std::string& architecture, Json& config) {
  ASSIGN_OR_RETURN(const int64_t head_dim, head_dim_of(config));
  ASSIGN_OR_RETURN(const int64_t rotated,
                   metadata.integer_or(architecture + ".rope.dimension_count", head_dim));
  if (head_dim > 0 && rotated != head_dim) config["rope_rotary_dim"] = rotated;
  return Ok{};
}

// What this family of programs cannot say is refused, not left out.
Status check_supported(const GgufMetadata& metadata, const std::string& architecture,
                       const Json& config) {
  ASSIGN_OR_RETURN(const int64_t experts, metadata.integer_or(architecture + ".expert_count", 0));
  if (experts > 0) {
    return Error{.what = "mixtures of experts are not supported",
                 .expected = "a dense model",
                 .actual = fmt::format("{}.expert_count {}", architecture, experts),
                 .fix = "Use a dense model."};
  }
  ASSIGN_OR_RETURN(const int64_t head_dim, head_dim_of(config));
  ASSIGN_OR_RETURN(const int64_t value_dim,
                   metadata.integer_or(architecture + ".attention.value_length", head_dim));
  if (value_dim == head_dim) return Ok{};
  return Error{.what = fmt::format("'{}.attention.value_length' is not supported", architecture),
               .expected = fmt::format("{}, the length of the keys", head_dim),
               .actual = fmt::format("{}", value_dim),
               .fix = "Use a model whose keys and values have one length."};
}

// Where a model has short convolutions, they are in the layers without KV heads.
Status add_layer_types(const GgufMetadata& metadata, const std::string& architecture,
                       Json& config) {
  const std::string key = architecture + ".attention.head_count_kv";
  if (!metadata.contains(architecture + ".shortconv.l_cache") || !metadata.is_array(key))
    return Ok{};
  ASSIGN_OR_RETURN(const std::vector<int64_t> heads, metadata.integers(key));
  Json types = Json::array();
  for (const int64_t count : heads) types.push_back(count == 0 ? "conv" : "full_attention");
  config["layer_types"] = std::move(types);
  return Ok{};
}

}  // namespace

Result<Json> gguf_config(const GgufMetadata& metadata) {
  ASSIGN_OR_RETURN(const std::string name, metadata.string("general.architecture"));
  const GgufArchitecture* architecture = gguf_architecture(name);
  Json config = {{"model_type", architecture != nullptr ? architecture->model_type : name}};
  RETURN_IF_ERROR(copy_keys(metadata, name, kModelKeys, config));
  RETURN_IF_ERROR(check_supported(metadata, name, config));
  RETURN_IF_ERROR(add_rotary_dim(metadata, name, config));
  RETURN_IF_ERROR(add_rope_scaling(metadata, name, config));
  RETURN_IF_ERROR(add_layer_types(metadata, name, config));
  if (architecture == nullptr) return config;  // models/ says that it does not know it
  config["rope_interleaved"] = architecture->rope_interleaved;
  // Of the models that GGUF calls "llama", those with a sliding window are Mistral's.
  if (name == "llama" && config.contains("sliding_window")) config["model_type"] = "mistral";
  return config;
}

Result<Json> gguf_generation_config(const GgufMetadata& metadata) {
  Json config = Json::object();
  RETURN_IF_ERROR(copy_keys(metadata, "", kGenerationKeys, config));
  Json ends = Json::array();
  for (const char* key : kEndOfTextKeys) {
    if (!metadata.contains(key)) continue;
    ASSIGN_OR_RETURN(const int64_t id, metadata.integer(key));
    if (std::find(ends.begin(), ends.end(), Json(id)) == ends.end()) ends.push_back(id);
  }
  // GGUF has no word for whether to draw; a temperature says it.
  if (const Json* temperature = json_find(config, "temperature")) {
    config["do_sample"] = temperature->get<double>() > 0;
  }
  if (!ends.empty()) config["eos_token_id"] = ends.size() == 1 ? ends[0] : ends;
  return config;
}

}  // namespace espalier::formats
