#include "espalier/decode/drafter.h"

#include <algorithm>
#include <cmath>

namespace espalier::decode {

bool OfferQueue::is_worse(const Entry& a, const Entry& b) {
  if (a.offer.log_probability != b.offer.log_probability) {
    return a.offer.log_probability < b.offer.log_probability;
  }
  return a.serial > b.serial;
}

void OfferQueue::push(const Offer& offer) {
  if (heap_.size() == capacity_) return;
  heap_.push_back({offer, serial_++});
  std::ranges::push_heap(heap_, is_worse);
}

Offer OfferQueue::pop() {
  std::ranges::pop_heap(heap_, is_worse);
  const Offer offer = heap_.back().offer;
  heap_.pop_back();
  return offer;
}

void grow_tree(std::span<Drafter* const> drafters, TreeShape shape, int64_t nodes, int64_t depth,
               OfferQueue& offers, DraftTree& tree) {
  offers.clear();
  if (nodes <= 0 || depth <= 0) return;
  for (const bool costly : {false, true}) {
    const bool is_sure = !offers.empty() && offers.best_log_probability() >= std::log(kSure);
    if (costly && is_sure) break;
    for (size_t i = 0; i < drafters.size(); ++i) {
      if (drafters[i]->is_costly() == costly) {
        drafters[i]->offer_first(static_cast<int32_t>(i), offers);
      }
    }
  }
  while (!offers.empty()) {
    const Offer offer = offers.pop();
    if (tree.depths()[static_cast<size_t>(offer.parent)] >= depth) continue;
    int32_t node = tree.child(offer.parent, offer.token);
    if (node == kNoNode) {
      if (tree.size() > nodes) return;
      const bool is_tip = offer.parent == tree.size() - 1;
      if (shape == TreeShape::kChain && !is_tip) continue;
      node = tree.add(offer.parent, offer.token, offer.log_probability, offer.proposer);
      if (node == kNoNode) return;
    }
    drafters[static_cast<size_t>(offer.proposer.drafter)]->offer_next(offer, node, offers);
  }
}

}  // namespace espalier::decode
