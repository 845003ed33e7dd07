// Drafter: guesses the next tokens of a text. Its guesses enter one queue together with those of
// other drafters, the most probable first (grow_tree), so a drafter says only which child it would
// add next: the first ones of the root, and after a node of its own was taken that node's best
// child and its next sibling. Knows tokens, not models. One caller at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/decode/draft_tree.h"
#include "espalier/decode/target.h"

namespace espalier::decode {

struct Offer {
  int32_t parent = kRoot;
  TokenId token = 0;
  float log_probability = 0;  // natural, of the path from the root; not above the parent's
  Proposer proposer;
  int32_t cursor = 0;  // the drafter's own: where this guess came from
};

// The most probable offer first; of equals the earlier. Fixed capacity: what does not fit is
// dropped, and nothing allocates.
class OfferQueue {
 public:
  explicit OfferQueue(size_t capacity) : capacity_(capacity) { heap_.reserve(capacity); }
  void clear() { heap_.clear(), serial_ = 0; }
  bool empty() const { return heap_.empty(); }
  void push(const Offer& offer);
  Offer pop();
  float best_log_probability() const { return heap_.front().offer.log_probability; }  // not empty

 private:
  struct Entry {
    Offer offer;
    int64_t serial;
  };
  static bool is_worse(const Entry& a, const Entry& b);

  const size_t capacity_;
  std::vector<Entry> heap_;
  int64_t serial_ = 0;
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // A new text, and room for `capacity` tokens in all. Later calls do not allocate, but that a drafter
  // with a state may grow into its next bucket, as the target does.
  virtual Status begin(std::span<const TokenId> text, int64_t capacity) = 0;
  virtual void append(TokenId token) = 0;

  // For drafters that read hidden states: these rows of the target's last window, in order, are
  // committed. How many positions it has seen so, and how it forgets those behind the first
  // `length`; a drafter that needs none has seen all there may be.
  virtual void observe(const Target& /*target*/, std::span<const int32_t> /*rows*/) {}
  virtual int64_t observed_length() const { return std::numeric_limits<int64_t>::max(); }
  virtual Status truncate(int64_t /*length*/) { return Ok{}; }

  // Whether an offer takes a call of its own. Such drafters are not asked where another one is sure.
  virtual bool is_costly() const { return false; }
  // Offers children of the root, the last token appended. `self` is this drafter's Proposer index.
  virtual void offer_first(int32_t self, OfferQueue& offers) = 0;
  // `taken` has become `node`: offers what may follow it, and what may stand in its place.
  virtual void offer_next(const Offer& taken, int32_t node, OfferQueue& offers) = 0;
  // Whether a node of an estimate was right, its parent being so.
  virtual void learn(int32_t estimate, bool was_right) = 0;
};

enum class TreeShape : uint8_t { kChain, kTree };

// Adds the most probable offers of all drafters to the tree, which holds its root alone, until it
// has `nodes` more or no offer is left. Nodes are at most `depth` below the root. Two drafters that
// offer the same child share the node. Costly drafters are left out where a cheap one is right in
// kSure of such cases with its first guess.
inline constexpr float kSure = 0.9f;
void grow_tree(std::span<Drafter* const> drafters, TreeShape shape, int64_t nodes, int64_t depth,
               OfferQueue& offers, DraftTree& tree);

}  // namespace espalier::decode
