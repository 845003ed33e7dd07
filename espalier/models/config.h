// Reading of configurations: typed keys with ranges, so that a hostile config.json ends as an Error
// that names the key. Pure functions over Json, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/weights.h"

namespace espalier::models {

inline constexpr const char* kEmbeddingTensor = "model.embed_tokens.weight";
std::string layer_prefix(int64_t layer);  // of the names of its tensors: "model.layers.0."

// Largest width, head count or vocabulary that is believed; products of two stay far within 64
// bits.
inline constexpr int64_t kMaxDimension = int64_t{1} << 24;
inline constexpr int64_t kMaxContext = int64_t{1} << 30;
// Programs have some ops for each layer and a frequency for each pair of a head, so these bound
// what a lie costs.
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHeadDim = 4096;

// An integer of 1..most.
Result<int64_t> dimension(const Json& config, const std::string& key, int64_t most = kMaxDimension);
Result<int64_t> dimension_or(const Json& config, const std::string& key, int64_t fallback,
                             int64_t most = kMaxDimension);
// The norm's epsilon: 0 to below 1.
Result<double> epsilon_or(const Json& config, const std::string& key, double fallback);

Error config_error(const std::string& what, std::string expected, std::string actual);

// `dividend` must be a multiple of `divisor`; the error names both keys.
Status expect_divides(const std::string& divisor_key, int64_t divisor,
                      const std::string& dividend_key, int64_t dividend);

// num_hidden_layers. Every layer has a tensor at least, so a count beyond the number of tensors is
// a lie and is refused before anything is built from it; so is one that leaves a layer of the
// checkpoint out, which would compute without it.
Result<int64_t> layer_count(const Json& config, const Weights& weights);

// Rows of the embedding, which vocab_size, where it is there, must agree with.
Result<int64_t> vocab_size(const Json& config, const Weights& weights, int64_t hidden_size);

// "lm_head.weight" where the checkpoint has it, otherwise the embedding, unless the configuration
// says that the head is not tied.
Result<std::string> head_tensor(const Json& config, const Weights& weights);

// Rows of a matrix of `columns` columns: the width that the configuration leaves to the weights.
Result<int64_t> rows_of(const Weights& weights, const std::string& tensor, int64_t columns);

}  // namespace espalier::models
