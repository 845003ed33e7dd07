// DSparkDrafter: decode::Drafter over a DraftNetwork. Every committed row of the target becomes a
// context row; a proposal is one run of the block, and a tree over its slots in which each node's
// children follow from its own token (the Markov head applied per parent).
//
// Slots keep their most probable rows only, and probabilities are among those.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/decode/drafter.h"
#include "espalier/engine/draft_network.h"
#include "espalier/engine/engine.h"

namespace espalier::engine {

class DSparkDrafter final : public decode::Drafter {
 public:
  // Rows of a slot that the Markov head rates: the others are too improbable to be drafted, and each
  // costs a product of [markov_rank].
  static constexpr int64_t kCandidates = 512;

  // Fails where there is no memory. `engine` has a draft network; trees have `max_nodes` at most.
  static Result<std::unique_ptr<DSparkDrafter>> create(const Engine& engine, int64_t max_nodes);

  bool is_costly() const override { return true; }
  Status begin(std::span<const TokenId> text, int64_t capacity) override;
  void append(TokenId token) override;
  void observe(const decode::Target& target, std::span<const int32_t> rows) override;
  int64_t observed_length() const override;
  Status truncate(int64_t length) override;
  void offer_first(int32_t self, decode::OfferQueue& offers) override;
  void offer_next(const decode::Offer& taken, int32_t node, decode::OfferQueue& offers) override;
  void learn(int32_t, bool) override {}

  // Of the last block: what slot `slot` says before the Markov head, by draft row.
  std::span<const float> base_logits(int64_t slot) const;

 private:
  // The children of one node: scores over the candidates of its slot, best ones taken first.
  struct Children {
    int64_t slot = 0;
    int32_t parent = 0;         // node
    float log_probability = 0;  // of the parent's path
  };
  DSparkDrafter(const Engine& engine, std::unique_ptr<units::State> state, int64_t max_nodes);
  bool run_context();
  void run_block();
  void choose_candidates(int64_t slot);
  void open_children(int64_t slot, int32_t parent, TokenId token, float log_probability,
                     int32_t self, decode::OfferQueue& offers);
  void offer_best(int32_t list, int32_t self, decode::OfferQueue& offers);

  const Engine& engine_;
  const DraftNetwork& network_;
  std::unique_ptr<units::State> state_;
  size_t bucket_ = 0;
  bool failed_ = false;  // no memory for a longer context: nothing more is proposed
  int64_t text_length_ = 0;
  TokenId last_token_ = 0;
  int64_t candidate_count_ = 0;
  int64_t embedding_index_ = 0;
  int64_t tap_width_ = 0;
  // Taps of committed rows that are no context rows yet.
  std::vector<float> pending_taps_;  // [window, tap_width]
  int64_t pending_rows_ = 0;
  std::vector<int32_t> chain_;        // -1, 0, 1, ...
  std::vector<int32_t> positions_;    // [window or block]
  std::vector<float> embeddings_;     // [block, hidden]
  std::vector<float> logits_;         // [block, draft_rows]
  std::vector<float> sorted_;         // [draft_rows] scratch of choose_candidates
  std::vector<int32_t> candidates_;   // [block, candidates] draft rows of each slot
  std::vector<float> slot_logits_;    // [block, candidates] of these rows
  std::vector<float> slot_w2_;        // [block, markov_rank, candidates] of these rows
  std::vector<bool> has_candidates_;  // [block]
  std::vector<Children> children_;    // lists, at most max_nodes
  std::vector<float> scores_;         // [max_nodes, candidates] log-probabilities; taken: -inf
  std::vector<float> exponentials_;   // [candidates]
};

}  // namespace espalier::engine
