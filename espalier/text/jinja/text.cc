#include "espalier/text/jinja/text.h"

#include <algorithm>

#include "espalier/base/check.h"

namespace espalier::text::jinja {

bool Text::from_user(size_t offset) const {
  const auto edges_up_to = std::upper_bound(edges_.begin(), edges_.end(), offset) - edges_.begin();
  return (edges_up_to & 1) != 0;
}

Text Text::substr(size_t begin, size_t end) const {
  CHECK(begin <= end && end <= size());
  Text piece;
  if (begin == end) return piece;
  piece.bytes_ = bytes_.substr(begin, end - begin);
  if (from_user(begin)) piece.edges_.push_back(0);
  const auto first = std::upper_bound(edges_.begin(), edges_.end(), begin);
  for (auto edge = first; edge != edges_.end() && *edge < end; ++edge) {
    piece.edges_.push_back(static_cast<uint32_t>(*edge - begin));
  }
  return piece;
}

void Text::append(std::string_view bytes, bool from_user) {
  if (bytes.empty()) return;
  if (ends_in_user() != from_user) edges_.push_back(static_cast<uint32_t>(size()));
  bytes_ += bytes;
}

void Text::append(const Text& other) {
  if (other.empty()) return;
  const auto joint = static_cast<uint32_t>(size());
  // The other text counts its edges from "template". If this one ends in user text, the joint is
  // one more edge; an edge of the other text at the same place cancels it.
  size_t first = 0;
  if (ends_in_user()) {
    if (!other.edges_.empty() && other.edges_[0] == 0) {
      first = 1;
    } else {
      edges_.push_back(joint);
    }
  }
  for (size_t i = first; i < other.edges_.size(); ++i) edges_.push_back(joint + other.edges_[i]);
  bytes_ += other.bytes_;
}

void Text::mark_all_from_user() {
  edges_.clear();
  if (!empty()) edges_.push_back(0);
}

}  // namespace espalier::text::jinja
