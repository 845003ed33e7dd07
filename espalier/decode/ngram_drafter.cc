#include "espalier/decode/ngram_drafter.h"

#include <algorithm>
#include <cmath>

namespace espalier::decode {
namespace {

// How often the token after a match of so many tokens is the model's own next one, before this text
// has shown it: of 103,000 positions of answers of SmolLM2-135M it was 0.52, 0.61, 0.71, 0.76 and
// 0.82 for 2 to 6 tokens (python/espalier_tools/train/drafter/tables.py), but most of these stand
// late in answers that repeat themselves. Short matches in short texts are right less often.
struct Prior {
  int64_t length;
  float probability;
};
constexpr Prior kPriors[] = {{1, 0.06f}, {2, 0.3f},   {3, 0.5f},   {4, 0.65f},
                             {5, 0.74f}, {6, 0.8f},   {7, 0.84f},  {9, 0.86f},
                             {10, 0.9f}, {16, 0.93f}, {20, 0.985f}};
constexpr float kSecondGuess = 0.15f;  // of what a longest match of that length is worth
constexpr float kPriorTries = 16;      // a prior counts like so many guesses of this text
constexpr float kMemory = 0.98f;       // of a guess after each further one: texts change

float prior(int64_t length) {
  float probability = kPriors[0].probability;
  for (const Prior& entry : kPriors) {
    if (entry.length <= length) probability = entry.probability;
  }
  return probability;
}

}  // namespace

NgramDrafter::NgramDrafter() {
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    for (int32_t length = 0; length <= kLongest; ++length) {
      const float worth = rank == 0 ? 1.0f : kSecondGuess;
      rates_[static_cast<size_t>(estimate_of(length, rank))] = {
          .right = kPriorTries * worth * prior(length), .tries = kPriorTries};
    }
  }
}

Status NgramDrafter::begin(std::span<const TokenId> text, int64_t capacity) {
  RETURN_IF_ERROR(automaton_.reserve(capacity));
  for (const TokenId token : text) automaton_.append(token);
  return Ok{};
}

int32_t NgramDrafter::estimate_of(int64_t length, int64_t rank) {
  return static_cast<int32_t>(std::min<int64_t>(length, kLongest) * kRanks +
                              std::min<int64_t>(rank, kRanks - 1));
}

float NgramDrafter::probability(int64_t length, int64_t rank) const {
  const Rate& rate = rates_[static_cast<size_t>(estimate_of(length, rank))];
  return rate.right / rate.tries;
}

void NgramDrafter::learn(int32_t estimate, bool was_right) {
  Rate& rate = rates_[static_cast<size_t>(estimate)];
  rate.right = kMemory * rate.right + (was_right ? 1.0f : 0.0f);
  rate.tries = kMemory * rate.tries + 1.0f;
}

// The guess `step` tokens behind a match. Each token of it makes the match longer. A match that the
// text's end cuts off goes on with the copy itself: a text of period p continues with that period.
void NgramDrafter::offer(int32_t self, int64_t match, int64_t step, int32_t parent,
                         float log_probability, OfferQueue& offers) const {
  const SuffixMatch& found = automaton_.matches()[static_cast<size_t>(match)];
  const auto text = automaton_.text();
  const int64_t period = static_cast<int64_t>(text.size()) - found.end;
  const int64_t rank = step == 0 ? match : 0;
  const int64_t length = found.length + step;
  offers.push({.parent = parent,
               .token = text[static_cast<size_t>(found.end + step % period)],
               .log_probability = log_probability + std::log(probability(length, rank)),
               .proposer = {.drafter = self, .estimate = estimate_of(length, rank)},
               .cursor = static_cast<int32_t>(step) * SuffixAutomaton::kMatches +
                         static_cast<int32_t>(match)});
}

void NgramDrafter::offer_first(int32_t self, OfferQueue& offers) {
  const auto match_count = static_cast<int64_t>(automaton_.matches().size());
  for (int64_t match = 0; match < match_count; ++match) offer(self, match, 0, kRoot, 0, offers);
}

void NgramDrafter::offer_next(const Offer& taken, int32_t node, OfferQueue& offers) {
  const int32_t match = taken.cursor % SuffixAutomaton::kMatches;
  const int32_t step = taken.cursor / SuffixAutomaton::kMatches;
  offer(taken.proposer.drafter, match, step + 1, node, taken.log_probability, offers);
}

}  // namespace espalier::decode
