#include "espalier/decode/draft_tree.h"

#include "espalier/base/check.h"

namespace espalier::decode {

DraftTree::DraftTree(int64_t capacity) : capacity_(capacity) {
  CHECK_GE(capacity, 1);
  const auto nodes = static_cast<size_t>(capacity);
  tokens_.reserve(nodes);
  parents_.reserve(nodes);
  depths_.reserve(nodes);
  log_probabilities_.reserve(nodes);
  proposers_.reserve(nodes);
}

void DraftTree::reset(TokenId root) {
  tokens_.assign(1, root);
  parents_.assign(1, kNoNode);
  depths_.assign(1, 0);
  log_probabilities_.assign(1, 0.0f);
  proposers_.assign(1, Proposer{});
}

int32_t DraftTree::add(int32_t parent, TokenId token, float log_probability, Proposer proposer) {
  CHECK_GE(parent, 0);
  CHECK_LT(parent, size());
  if (size() == capacity_) return kNoNode;
  tokens_.push_back(token);
  parents_.push_back(parent);
  depths_.push_back(depths_[static_cast<size_t>(parent)] + 1);
  log_probabilities_.push_back(log_probability);
  proposers_.push_back(proposer);
  return size() - 1;
}

int32_t DraftTree::child(int32_t parent, TokenId token) const {
  for (auto node = static_cast<size_t>(parent) + 1; node < tokens_.size(); ++node) {
    if (parents_[node] == parent && tokens_[node] == token) return static_cast<int32_t>(node);
  }
  return kNoNode;
}

}  // namespace espalier::decode
