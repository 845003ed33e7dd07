// DraftTree: guesses of how a text goes on. Node 0 is the root, the last token chosen, whose row has
// not run yet; every other node holds a token that may follow its parent, an earlier node. Best-first
// growth adds the most probable nodes first, so the first n nodes are the best tree of n nodes.
//
// Capacity is fixed when it is made; nothing allocates later. One caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/tokenizer_data.h"

namespace espalier::decode {

inline constexpr int32_t kRoot = 0;
inline constexpr int32_t kNoNode = -1;

// Who proposed a node, and for which of its estimates (Drafter::learn).
struct Proposer {
  int32_t drafter = -1;  // index in the list of drafters; -1: the root
  int32_t estimate = 0;
};

class DraftTree {
 public:
  explicit DraftTree(int64_t capacity);  // nodes at most, the root included; at least 1

  void reset(TokenId root);
  // A new child of `parent`, which has none of this token; `log_probability` (natural) is that of
  // the whole path from the root. The node's number, or kNoNode where the tree is full.
  int32_t add(int32_t parent, TokenId token, float log_probability, Proposer proposer);
  int32_t child(int32_t parent, TokenId token) const;  // kNoNode: none

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  int64_t capacity() const { return capacity_; }
  // By node; parents and tokens are what a Window takes.
  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const int32_t> parents() const { return parents_; }  // kNoNode for the root
  std::span<const int32_t> depths() const { return depths_; }    // 0 for the root
  std::span<const float> log_probabilities() const { return log_probabilities_; }
  std::span<const Proposer> proposers() const { return proposers_; }

 private:
  const int64_t capacity_;
  std::vector<TokenId> tokens_;
  std::vector<int32_t> parents_;
  std::vector<int32_t> depths_;
  std::vector<float> log_probabilities_;
  std::vector<Proposer> proposers_;
};

}  // namespace espalier::decode
