#include "espalier/models/config.h"

namespace espalier::models {

Error config_error(const std::string& what, std::string expected, std::string actual) {
  return Error{.what = "config: " + what,
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Check that config.json is the one of this checkpoint."};
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

Result<int64_t> layer_count(const Json& config, const Weights& weights) {
  ASSIGN_OR_RETURN(const int64_t layers, dimension(config, "num_hidden_layers", kMaxLayers));
  const auto tensors = static_cast<int64_t>(weights.all().size());
  if (layers <= tensors) return layers;
  return config_error("'num_hidden_layers' exceeds the number of tensors",
                      fmt::format("at most {}", tensors), fmt::format("{}", layers));
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
