// GuessingDrafter: offers children by a hash of the path, of which `right_share` are what the
// FakeTarget says next; a tree of any shape, without a model.
#pragma once

#include <cmath>
#include <vector>

#include "espalier/decode/drafter.h"
#include "tests/decode/fake_target.h"

namespace espalier::decode {

class GuessingDrafter : public Drafter {
 public:
  GuessingDrafter(int64_t vocab, double right_share, uint64_t seed)
      : vocab_(vocab), right_share_(right_share), seed_(seed) {}

  Status begin(std::span<const TokenId> text, int64_t) override {
    text_.assign(text.begin(), text.end());
    return Ok{};
  }
  void append(TokenId token) override { text_.push_back(token); }

  void offer_first(int32_t self, OfferQueue& offers) override {
    paths_.assign(1, text_);
    offer_children(self, kRoot, 0, offers);
  }
  void offer_next(const Offer& taken, int32_t node, OfferQueue& offers) override {
    paths_.resize(std::max(paths_.size(), static_cast<size_t>(node) + 1));
    paths_[static_cast<size_t>(node)] = paths_[static_cast<size_t>(taken.parent)];
    paths_[static_cast<size_t>(node)].push_back(taken.token);
    offer_children(taken.proposer.drafter, node, taken.log_probability, offers);
  }
  void learn(int32_t, bool was_right) override {
    ++learned;
    right += was_right ? 1 : 0;
  }

  int64_t learned = 0, right = 0;

 private:
  uint64_t hash(const std::vector<TokenId>& path, uint64_t salt) const {
    uint64_t h = seed_ + salt;
    for (const TokenId token : path) h = (h ^ static_cast<uint64_t>(token)) * 0x100000001B3u;
    return (h * 0x9E3779B97F4A7C15u) >> 40;
  }

  void offer_children(int32_t self, int32_t parent, float log_probability, OfferQueue& offers) {
    const std::vector<TokenId>& path = paths_[static_cast<size_t>(parent)];
    const auto children = static_cast<int64_t>(hash(path, 1) % 4);
    std::vector<TokenId> offered;
    for (int64_t i = 0; i < children; ++i) {
      const uint64_t draw = hash(path, 10 + static_cast<uint64_t>(i));
      const bool is_right = static_cast<double>(draw % 1000) < 1000 * right_share_;
      const TokenId token = is_right ? FakeTarget::next(path, vocab_)
                                     : static_cast<TokenId>(draw % static_cast<uint64_t>(vocab_));
      if (std::ranges::find(offered, token) != offered.end()) continue;
      offered.push_back(token);
      offers.push({.parent = parent,
                   .token = token,
                   .log_probability =
                       log_probability + std::log(0.1f + static_cast<float>(draw % 90) / 100),
                   .proposer = {.drafter = self, .estimate = static_cast<int32_t>(i)},
                   .cursor = 0});
    }
  }

  const int64_t vocab_;
  const double right_share_;
  const uint64_t seed_;
  std::vector<TokenId> text_;
  std::vector<std::vector<TokenId>> paths_;  // by node
};

}  // namespace espalier::decode
