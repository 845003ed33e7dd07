// Log-probabilities of the raw distribution: what the model said, before any penalty, temperature
// or truncation. Does not allocate; any thread.
#pragma once

#include <span>

#include "espalier/base/tokenizer_data.h"

namespace espalier::decode {

struct TokenLogprob {
  TokenId id = 0;
  float logprob = 0;  // natural logarithm
};

// The largest logit, the lowest id on ties; NaN never wins. 0 where there is nothing but NaN.
TokenId argmax(std::span<const float> logits);

// ln(sum(exp(logits))); logits[id] minus this is the log-probability of id.
double log_sum_exp(std::span<const float> logits);

// The out.size() most probable tokens, best first, the lower id on ties; out has at most [vocab].
void best_logprobs(std::span<const float> logits, double log_sum_exp, std::span<TokenLogprob> out);

}  // namespace espalier::decode
