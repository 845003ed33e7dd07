#include "espalier/decode/logprobs.h"

#include <algorithm>
#include <cmath>

#include "espalier/decode/softmax.h"

namespace espalier::decode {

TokenId argmax(std::span<const float> logits) {
  size_t best = 0;
  while (best + 1 < logits.size() && std::isnan(logits[best])) ++best;
  for (size_t id = best + 1; id < logits.size(); ++id) {
    if (logits[id] > logits[best]) best = id;
  }
  return logits.empty() || std::isnan(logits[best]) ? 0 : static_cast<TokenId>(best);
}

double log_sum_exp(std::span<const float> logits) {
  if (logits.empty()) return 0;
  const float best = logits[static_cast<size_t>(argmax(logits))];
  return best + std::log(sum_of_exponentials(logits, best));
}

void best_logprobs(std::span<const float> logits, double log_sum_exp, std::span<TokenLogprob> out) {
  // A short sorted list of logits: out is small, the vocabulary is read once.
  size_t filled = 0;
  for (size_t id = 0; id < logits.size() && !out.empty(); ++id) {
    const float logit = logits[id];
    if (filled == out.size() && !(logit > out.back().logprob)) continue;
    size_t place = filled < out.size() ? filled++ : filled - 1;
    for (; place > 0 && logit > out[place - 1].logprob; --place) out[place] = out[place - 1];
    out[place] = {static_cast<TokenId>(id), logit};
  }
  for (TokenLogprob& entry : out.first(filled)) {
    entry.logprob = static_cast<float>(entry.logprob - log_sum_exp);
  }
}

}  // namespace espalier::decode
