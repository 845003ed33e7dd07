// Sampler: chooses a token from a row of logits. Processors run in one order, transformers' where
// it has them:
//
//   1 logit bias           score += bias
//   2 repetition penalty   tokens of prompt and answer: score / p where positive, else score * p
//   3 frequency, presence  tokens of the answer: score -= frequency * count + presence
//   4 temperature          0 takes the best score now, the lowest id on ties; else score / temperature
//   5 top-k                the k best scores, lower ids first on ties
//   6 top-p                the shortest run of best tokens whose probabilities reach p; at least one
//   7 min-p                no token less probable than min-p times the most probable one
//   8 draw                 inverse of the cumulative distribution at
//                          uniform_draw(seed, sequence, position)
//
// A choice depends on logits, options, the observed tokens and position alone; sums are fp32 in a
// fixed order. NaN logits count as minus infinity. One sampler per answer, one caller; sample()
// does not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::decode {

struct LogitBias {
  TokenId token = 0;
  float bias = 0;
};

struct SamplingOptions {
  double temperature = 0;                  // 0 to 100; 0: greedy
  int64_t top_k = 0;                       // tokens; 0: off
  double top_p = 1;                        // 0 to 1; 1: off
  double min_p = 0;                        // 0 to 1; 0: off
  double repetition_penalty = 1;           // 0.01 to 100; 1: off
  double presence_penalty = 0;             // -100 to 100; 0: off
  double frequency_penalty = 0;            // -100 to 100; 0: off
  std::vector<LogitBias> logit_bias = {};  // biases of -100 to 100; those of one token add up
  uint64_t seed = 0;
  uint64_t sequence = 0;  // tells apart the answers of one seed
};

Status check(const SamplingOptions& options, int64_t vocab_size);

// No processor can change the best token: the argmax head is enough.
bool is_plain_greedy(const SamplingOptions& options);

class Sampler {
 public:
  static Result<Sampler> make(const SamplingOptions& options, int64_t vocab_size);

  void observe_prompt(std::span<const TokenId> tokens);
  void observe_answer(TokenId token);

  // `position` is that of the chosen token.
  TokenId sample(std::span<const float> logits, int64_t position);

  // What sample() draws from: probabilities [vocab], zero for the tokens that were cut off.
  void distribution(std::span<const float> logits, std::span<float> probabilities);

 private:
  Sampler(const SamplingOptions& options, int64_t vocab_size);
  void process(std::span<const float> logits);  // 1 to 3
  void temper();                                // 4
  int64_t truncate();                           // 5 to 7; the number of tokens kept
  float sum_blocks(int64_t kept);

  struct Candidate {
    float score;
    TokenId id;
  };

  SamplingOptions options_;
  std::vector<uint8_t> seen_;          // [vocab] in prompt or answer
  std::vector<int32_t> answer_count_;  // [vocab]
  std::vector<float> scores_;          // [vocab]
  std::vector<float> weights_;         // [vocab] exp(score - best score)
  std::vector<Candidate> heap_;        // [vocab]
  std::vector<TokenId> kept_ids_;      // [vocab] the first truncate() are those to draw from
  std::vector<float> kept_weights_;    // [vocab]
  std::vector<float> block_sums_;      // [vocab / kSumBlock, rounded up]
};

}  // namespace espalier::decode
