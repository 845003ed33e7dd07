// NgramDrafter: what followed the last time when the text ended like this. Looks up the longest
// suffix that occurred before (SuffixAutomaton) and follows the text from there; shorter suffixes
// that went on otherwise are second guesses. How often a guess is right is counted by the length of
// its match as the text goes on.
#pragma once

#include <array>
#include <cstdint>

#include "espalier/decode/drafter.h"
#include "espalier/decode/suffix_automaton.h"

namespace espalier::decode {

class NgramDrafter final : public Drafter {
 public:
  NgramDrafter();

  Status begin(std::span<const TokenId> text, int64_t capacity) override;
  void append(TokenId token) override { automaton_.append(token); }
  void offer_first(int32_t self, OfferQueue& offers) override;
  void offer_next(const Offer& taken, int32_t node, OfferQueue& offers) override;
  void learn(int32_t estimate, bool was_right) override;

  // Of a guess after a match of `length` tokens, the `rank`th longest.
  float probability(int64_t length, int64_t rank) const;

 private:
  static constexpr int32_t kLongest = 32;  // lengths above count as this
  static constexpr int32_t kRanks = 2;     // the longest match, any other

  struct Rate {
    float right = 0, tries = 0;
  };
  static int32_t estimate_of(int64_t length, int64_t rank);
  void offer(int32_t self, int64_t match, int64_t step, int32_t parent, float log_probability,
             OfferQueue& offers) const;

  SuffixAutomaton automaton_;
  std::array<Rate, static_cast<size_t>(kLongest + 1) * kRanks> rates_;
};

}  // namespace espalier::decode
