#include "espalier/models/config.h"

#include <charconv>

namespace espalier::models {

Error config_error(const std::string& what, std::string expected, std::string actual) {
  return Error{.what = "config: " + what,
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Check that this configuration belongs to these weights."};
}

Result<int64_t> dimension(const Json& config, const std::string& key, int64_t most) {
  ASSIGN_OR_RETURN(const int64_t value, json_integer(config, key));
  if (value >= 1 && value <= most) return value;
  return config_error(fmt::format("'{}' is out of range", key), fmt::format("1 to {}", most),
                      fmt::format("{}", value));
}

Result<int64_t> dimension_or(const Json& config, const std::string& key, int64_t fallback,
                             int64_t most) {
  if (json_find(config, key) == nullptr) return fallback;
  return dimension(config, key, most);
}

Result<double> epsilon_or(const Json& config, const std::string& key, double fallback) {
  ASSIGN_OR_RETURN(const double value, json_number_or(config, key, fallback));
  if (value >= 0 && value < 1) return value;
  return config_error(fmt::format("'{}' is out of range", key), "0 to below 1",
                      fmt::format("{}", value));
}

Status expect_divides(const std::string& divisor_key, int64_t divisor,
                      const std::string& dividend_key, int64_t dividend) {
  if (dividend % divisor == 0) return Ok{};
  return config_error(fmt::format("'{}' does not divide '{}'", divisor_key, dividend_key),
                      fmt::format("a divisor of {}", dividend), fmt::format("{}", divisor));
}

namespace {

constexpr std::string_view kLayers = "model.layers.";

// The layer that a tensor belongs to; -1 where it belongs to none.
int64_t layer_of(std::string_view tensor) {
  int64_t layer = -1;
  if (!tensor.starts_with(kLayers)) return layer;
  tensor.remove_prefix(kLayers.size());
  std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  return layer;
}

}  // namespace

std::string layer_prefix(int64_t layer) { return fmt::format("{}{}.", kLayers, layer); }

Result<int64_t> layer_count(const Json& config, const Weights& weights) {
  ASSIGN_OR_RETURN(const int64_t layers, dimension(config, "num_hidden_layers", kMaxLayers));
  const auto tensors = static_cast<int64_t>(weights.all().size());
  if (layers > tensors) {
    return config_error("'num_hidden_layers' exceeds the number of tensors",
                        fmt::format("at most {}", tensors), fmt::format("{}", layers));
  }
  for (const auto& [name, view] : weights.all()) {
    const int64_t layer = layer_of(name);
    if (layer < layers) continue;
    return config_error("'num_hidden_layers' leaves layers out",
                        fmt::format("more than {}, which tensor '{}' belongs to", layer, name),
                        fmt::format("{}", layers));
  }
  return layers;
}

Result<int64_t> vocab_size(const Json& config, const Weights& weights, int64_t hidden_size) {
  ASSIGN_OR_RETURN(const int64_t rows, rows_of(weights, kEmbeddingTensor, hidden_size));
  ASSIGN_OR_RETURN(const int64_t configured, json_integer_or(config, "vocab_size", rows));
  if (configured == rows) return rows;
  return config_error("'vocab_size' is not that of the weights",
                      fmt::format("{}, the rows of '{}'", rows, kEmbeddingTensor),
                      fmt::format("{}", configured));
}

Result<std::string> head_tensor(const Json& config, const Weights& weights) {
  const std::string own = "lm_head.weight";
  if (weights.contains(own)) return own;
  ASSIGN_OR_RETURN(const bool tied_by_word, json_bool_or(config, "tie_word_embeddings", true));
  ASSIGN_OR_RETURN(const bool tied, json_bool_or(config, "tie_embedding", tied_by_word));
  if (tied) return std::string(kEmbeddingTensor);
  return Error{.what = "tensor 'lm_head.weight' is missing",
               .expected = "it, because 'tie_word_embeddings' is false",
               .actual = {},
               .fix = "Check that all files of the checkpoint are there, or set the key to true."};
}

Result<int64_t> rows_of(const Weights& weights, const std::string& tensor, int64_t columns) {
  ASSIGN_OR_RETURN(const TensorView view, weights.get(tensor));
  if (view.shape.size() == 2 && view.shape[1] == columns && view.shape[0] >= 1 &&
      view.shape[0] <= kMaxDimension) {
    return view.shape[0];
  }
  return Error{.what = fmt::format("tensor '{}' has the wrong shape", tensor),
               .expected = fmt::format("[1 to {}, {}]", kMaxDimension, columns),
               .actual = shape_text(view.shape),
               .fix = "The configuration and the weights do not belong together."};
}

}  // namespace espalier::models
