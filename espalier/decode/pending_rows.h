// PendingRows: a target whose unit writes K and V in aligned blocks only, made into one that commits
// any path. Tokens that are committed but do not fill a block yet are pending: every window begins
// with their rows once more, and the rest of it is for new ones, so max_rows() moves between the
// unit's window and block - 1 less. The unit commits whole blocks, at positions that are multiples
// of the block.
//
// Owns nothing but the pending tokens. run() and commit() do not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/decode/target.h"

namespace espalier::decode {

class PendingRows final : public Target {
 public:
  // `unit` has committed a multiple of `block`; its window is as high as that at least.
  PendingRows(Target& unit, int64_t block);

  int64_t vocab_size() const override { return unit_.vocab_size(); }
  int64_t context_length() const override { return unit_.context_length(); }
  int64_t max_rows() const override { return unit_.max_rows() - pending_count(); }
  int64_t committed_length() const override { return unit_.committed_length() + pending_count(); }
  Status reserve(int64_t positions) override { return unit_.reserve(positions); }
  void run(const Window& window) override;
  TokenId argmax(int64_t selected_index) const override { return unit_.argmax(selected_index); }
  std::span<const float> logits(int64_t selected_index) const override {
    return unit_.logits(selected_index);
  }
  std::span<const float> taps(int64_t row) const override {
    return unit_.taps(row + pending_in_window_);
  }
  void commit(std::span<const int32_t> path) override;

 private:
  int64_t pending_count() const { return static_cast<int64_t>(pending_.size()); }

  Target& unit_;
  const int64_t block_;
  std::vector<TokenId> pending_;    // fewer than a block between calls
  int64_t pending_in_window_ = 0;   // rows of the last window that were re-fed
  std::vector<TokenId> tokens_;     // of the unit's window
  std::vector<int32_t> parents_;    // likewise
  std::vector<int32_t> selected_;   // likewise
  std::vector<int32_t> unit_path_;  // rows of the unit's window behind the committed blocks
};

}  // namespace espalier::decode
