#include "espalier/decode/pending_rows.h"

#include <numeric>

#include "espalier/base/check.h"

namespace espalier::decode {

PendingRows::PendingRows(Target& unit, int64_t block) : unit_(unit), block_(block) {
  CHECK_GE(block, 1);
  CHECK_GE(unit.max_rows(), block);
  CHECK_EQ(unit.committed_length() % block, 0);
  const auto rows = static_cast<size_t>(unit.max_rows());
  pending_.reserve(rows);
  tokens_.reserve(rows);
  parents_.reserve(rows);
  selected_.reserve(rows);
  unit_path_.reserve(rows);
}

void PendingRows::run(const Window& window) {
  CHECK_LE(static_cast<int64_t>(window.tokens.size()), max_rows());
  pending_in_window_ = pending_count();
  const auto shift = static_cast<int32_t>(pending_in_window_);
  tokens_.assign(pending_.begin(), pending_.end());
  tokens_.insert(tokens_.end(), window.tokens.begin(), window.tokens.end());
  parents_.resize(pending_.size());
  std::iota(parents_.begin(), parents_.end(), -1);
  // What continued the committed text continues the last pending row: -1 becomes shift - 1.
  for (const int32_t parent : window.parents) parents_.push_back(parent + shift);
  selected_.clear();
  for (const int32_t row : window.selected) selected_.push_back(row + shift);
  unit_.run({.tokens = tokens_, .parents = parents_, .selected = selected_, .head = window.head});
}

void PendingRows::commit(std::span<const int32_t> path) {
  unit_path_.resize(static_cast<size_t>(pending_in_window_));
  std::iota(unit_path_.begin(), unit_path_.end(), 0);
  for (const int32_t row : path) {
    unit_path_.push_back(row + static_cast<int32_t>(pending_in_window_));
  }
  const auto whole = unit_path_.size() / static_cast<size_t>(block_) * static_cast<size_t>(block_);
  if (whole > 0) unit_.commit(std::span(unit_path_).first(whole));
  pending_.clear();
  for (size_t i = whole; i < unit_path_.size(); ++i) {
    pending_.push_back(tokens_[static_cast<size_t>(unit_path_[i])]);
  }
}

}  // namespace espalier::decode
