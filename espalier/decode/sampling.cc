#include "espalier/decode/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

#include "espalier/base/random.h"
#include "espalier/decode/logprobs.h"
#include "espalier/decode/softmax.h"

namespace espalier::decode {
namespace {

// Weights are added in blocks, then the blocks: the error of a sum over a vocabulary stays near
// that of a sum over 64 numbers, and a draw walks blocks before tokens.
constexpr int64_t kSumBlock = 64;

struct Range {
  std::string_view name;
  double SamplingOptions::*value;
  double lowest, highest;
};

constexpr Range kRanges[] = {
    {"temperature", &SamplingOptions::temperature, 0, 100},
    {"top-p", &SamplingOptions::top_p, 0, 1},
    {"min-p", &SamplingOptions::min_p, 0, 1},
    {"repetition penalty", &SamplingOptions::repetition_penalty, 0.01, 100},
    {"presence penalty", &SamplingOptions::presence_penalty, -100, 100},
    {"frequency penalty", &SamplingOptions::frequency_penalty, -100, 100},
};
constexpr float kLargestBias = 100;

Error out_of_range(std::string_view name, const std::string& expected, const std::string& actual) {
  return Error{.what = fmt::format("{} is out of range", name),
               .expected = expected,
               .actual = actual,
               .fix = "Choose a value inside the range."};
}

}  // namespace

Status check(const SamplingOptions& options, int64_t vocab_size) {
  for (const Range& range : kRanges) {
    const double value = options.*range.value;
    if (!(value >= range.lowest && value <= range.highest)) {  // also catches NaN
      return out_of_range(range.name, fmt::format("{} to {}", range.lowest, range.highest),
                          fmt::format("{}", value));
    }
  }
  if (options.top_k < 0) {
    return out_of_range("top-k", "0 (off) or more", fmt::format("{}", options.top_k));
  }
  for (const LogitBias& bias : options.logit_bias) {
    if (bias.token < 0 || bias.token >= vocab_size) {
      return out_of_range("token of a logit bias", fmt::format("0 to {}", vocab_size - 1),
                          fmt::format("{}", bias.token));
    }
    if (!(std::abs(bias.bias) <= kLargestBias)) {
      return out_of_range(fmt::format("logit bias of token {}", bias.token),
                          fmt::format("{} to {}", -kLargestBias, kLargestBias),
                          fmt::format("{}", bias.bias));
    }
  }
  return Ok{};
}

bool is_plain_greedy(const SamplingOptions& options) {
  return options.temperature == 0 && options.logit_bias.empty() &&
         options.repetition_penalty == 1 && options.presence_penalty == 0 &&
         options.frequency_penalty == 0;
}

Result<Sampler> Sampler::make(const SamplingOptions& options, int64_t vocab_size) {
  CHECK_GE(vocab_size, 1);
  RETURN_IF_ERROR(check(options, vocab_size));
  return Sampler(options, vocab_size);
}

Sampler::Sampler(const SamplingOptions& options, int64_t vocab_size) : options_(options) {
  if (is_plain_greedy(options)) return;  // nothing below is ever used
  const auto count = static_cast<size_t>(vocab_size);
  seen_.resize(count);
  answer_count_.resize(count);
  scores_.resize(count);
  weights_.resize(count);
  heap_.resize(count);
  kept_ids_.resize(count);
  kept_weights_.resize(count);
  block_sums_.resize((count + kSumBlock - 1) / kSumBlock);
}

void Sampler::observe_prompt(std::span<const TokenId> tokens) {
  if (seen_.empty()) return;
  for (const TokenId token : tokens) seen_[static_cast<size_t>(token)] = 1;
}

void Sampler::observe_answer(TokenId token) {
  if (seen_.empty()) return;
  seen_[static_cast<size_t>(token)] = 1;
  ++answer_count_[static_cast<size_t>(token)];
}

void Sampler::process(std::span<const float> logits) {
  CHECK_EQ(logits.size(), scores_.size());
  std::ranges::transform(logits, scores_.begin(), [](float logit) {
    return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
  });
  for (const LogitBias& bias : options_.logit_bias) {
    scores_[static_cast<size_t>(bias.token)] += bias.bias;
  }
  const auto repetition = static_cast<float>(options_.repetition_penalty);
  const auto frequency = static_cast<float>(options_.frequency_penalty);
  const auto presence = static_cast<float>(options_.presence_penalty);
  if (repetition == 1 && frequency == 0 && presence == 0) return;
  for (size_t id = 0; id < scores_.size(); ++id) {
    if (seen_[id] == 0) continue;
    float& score = scores_[id];
    score = score < 0 ? score * repetition : score / repetition;
    if (answer_count_[id] == 0) continue;
    score -= frequency * static_cast<float>(answer_count_[id]) + presence;
  }
}

// Scores become (score - best) / temperature, so that no temperature can overflow them.
void Sampler::temper() {
  const float best = scores_[static_cast<size_t>(argmax(scores_))];
  const auto temperature = static_cast<float>(
      std::max(options_.temperature, static_cast<double>(std::numeric_limits<float>::min())));
  for (float& score : scores_) score = score == best ? 0 : (score - best) / temperature;
  exponentials(scores_, 0, weights_);
}

// Adds up kept_weights_[0, kept).
float Sampler::sum_blocks(int64_t kept) {
  float total = 0;
  for (int64_t first = 0; first < kept; first += kSumBlock) {
    float sum = 0;
    for (int64_t i = first; i < std::min(kept, first + kSumBlock); ++i) {
      sum += kept_weights_[static_cast<size_t>(i)];
    }
    block_sums_[static_cast<size_t>(first / kSumBlock)] = sum;
    total += sum;
  }
  return total;
}

// Keeps tokens from the best downwards: a heap gives them in order and is left when the rest is cut
// off.
int64_t Sampler::truncate() {
  const auto vocab = static_cast<int64_t>(scores_.size());
  std::iota(kept_ids_.begin(), kept_ids_.end(), 0);
  std::ranges::copy(weights_, kept_weights_.begin());
  const bool has_top_k = options_.top_k > 0 && options_.top_k < vocab;
  if (!has_top_k && options_.top_p == 1 && options_.min_p == 0) return vocab;

  const int64_t limit = has_top_k ? options_.top_k : vocab;
  float whole = sum_blocks(vocab);  // of what top-k leaves
  const auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score < b.score : a.id > b.id;
  };
  for (size_t id = 0; id < heap_.size(); ++id) heap_[id] = {scores_[id], static_cast<TokenId>(id)};
  std::ranges::make_heap(heap_, worse);
  const auto take_best = [&](int64_t index) {
    const auto end = heap_.end() - index;
    std::pop_heap(heap_.begin(), end, worse);
    const TokenId id = (end - 1)->id;
    kept_ids_[static_cast<size_t>(index)] = id;
    return kept_weights_[static_cast<size_t>(index)] = weights_[static_cast<size_t>(id)];
  };
  if (has_top_k) {
    for (int64_t i = 0; i < limit; ++i) take_best(i);
    whole = sum_blocks(limit);
  }
  const float enough = static_cast<float>(options_.top_p) * whole;
  float taken = 0;
  int64_t kept = 0;
  for (; kept < limit; ++kept) {
    const float weight = has_top_k ? kept_weights_[static_cast<size_t>(kept)] : take_best(kept);
    // The best token has weight 1, so min-p compares with the weight itself.
    const bool cut =
        (options_.top_p < 1 && taken >= enough) || weight < static_cast<float>(options_.min_p);
    if (cut && kept > 0) break;
    taken += weight;
  }
  return kept;
}

TokenId Sampler::sample(std::span<const float> logits, int64_t position) {
  if (scores_.empty()) return argmax(logits);  // plain greedy: nothing changes the order
  process(logits);
  if (options_.temperature == 0) return argmax(scores_);
  temper();
  const int64_t kept = truncate();
  const double draw =
      uniform_draw(options_.seed, options_.sequence, static_cast<uint64_t>(position));
  auto rest = static_cast<float>(draw * sum_blocks(kept));
  int64_t i = 0;
  for (; i + kSumBlock < kept && rest >= block_sums_[static_cast<size_t>(i / kSumBlock)];
       i += kSumBlock) {
    rest -= block_sums_[static_cast<size_t>(i / kSumBlock)];
  }
  // Rounding may carry the walk past the end of the last block: then its last possible token is the
  // one.
  int64_t chosen = -1;
  for (; i < kept; ++i) {
    const float weight = kept_weights_[static_cast<size_t>(i)];
    if (weight > 0) chosen = i;
    if (rest < weight) break;
    rest -= weight;
  }
  return chosen < 0 ? argmax(scores_) : kept_ids_[static_cast<size_t>(chosen)];
}

void Sampler::distribution(std::span<const float> logits, std::span<float> probabilities) {
  CHECK_EQ(probabilities.size(), logits.size());
  std::ranges::fill(probabilities, 0.0F);
  if (scores_.empty()) {
    probabilities[static_cast<size_t>(argmax(logits))] = 1;
    return;
  }
  process(logits);
  if (options_.temperature == 0) {
    probabilities[static_cast<size_t>(argmax(scores_))] = 1;
    return;
  }
  temper();
  const int64_t kept = truncate();
  const float total = sum_blocks(kept);
  for (size_t i = 0; i < static_cast<size_t>(kept); ++i) {
    probabilities[static_cast<size_t>(kept_ids_[i])] = kept_weights_[i] / total;
  }
}

}  // namespace espalier::decode
