#include "espalier/cli/sampling_choice.h"

#include <limits>
#include <random>
#include <utility>

namespace espalier::cli {
namespace {

constexpr int64_t kAnyVocabSize = std::numeric_limits<TokenId>::max();  // where it is not known yet

Result<decode::SamplingOptions> from_configuration(const Json& config) {
  decode::SamplingOptions sampling;
  ASSIGN_OR_RETURN(sampling.repetition_penalty, json_number_or(config, "repetition_penalty", 1));
  ASSIGN_OR_RETURN(const bool samples, json_bool_or(config, "do_sample", false));
  if (!samples) return sampling;
  ASSIGN_OR_RETURN(sampling.temperature, json_number_or(config, "temperature", 1));
  ASSIGN_OR_RETURN(sampling.top_k, json_integer_or(config, "top_k", 0));
  ASSIGN_OR_RETURN(sampling.top_p, json_number_or(config, "top_p", 1));
  ASSIGN_OR_RETURN(sampling.min_p, json_number_or(config, "min_p", 0));
  return sampling;
}

Result<decode::SamplingOptions> checked_configuration(const Json& config) {
  ASSIGN_OR_RETURN(const decode::SamplingOptions sampling, from_configuration(config));
  RETURN_IF_ERROR(decode::check(sampling, kAnyVocabSize));
  return sampling;
}

decode::SamplingOptions with_flags(decode::SamplingOptions sampling, const Options& options) {
  const bool truncates = options.top_k || options.top_p || options.min_p;
  if (truncates && sampling.temperature == 0) sampling.temperature = 1;
  sampling.temperature = options.temperature.value_or(sampling.temperature);
  sampling.top_k = options.top_k.value_or(sampling.top_k);
  sampling.top_p = options.top_p.value_or(sampling.top_p);
  sampling.min_p = options.min_p.value_or(sampling.min_p);
  sampling.repetition_penalty = options.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.presence_penalty = options.presence_penalty.value_or(0);
  sampling.frequency_penalty = options.frequency_penalty.value_or(0);
  sampling.logit_bias = options.logit_bias;
  if (options.greedy) {
    sampling.temperature = 0;
    sampling.repetition_penalty = options.repetition_penalty.value_or(1);
  }
  return sampling;
}

}  // namespace

Status check_sampling(const Options& options) {
  return decode::check(with_flags({}, options), kAnyVocabSize);
}

Result<decode::SamplingOptions> choose_sampling(const Options& options,
                                                const formats::Checkpoint& checkpoint) {
  auto configured = checked_configuration(checkpoint.generation_config);
  if (!configured.ok()) {
    const bool is_gguf = checkpoint.format == "gguf";
    return configured.error()
        .with_context(is_gguf ? "general.sampling" : "generation_config.json")
        .with_context(checkpoint.path);
  }
  decode::SamplingOptions sampling = with_flags(std::move(configured).value(), options);
  // 32 bits: a seed that a person can copy, and that JSON readers keep exactly.
  sampling.seed = options.seed ? static_cast<uint64_t>(*options.seed) : std::random_device()();
  return sampling;
}

}  // namespace espalier::cli
