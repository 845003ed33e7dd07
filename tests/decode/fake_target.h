// FakeTarget: a language model of three lines for tests of decoding. The next token after a
// committed text is (sum of its tokens + its length) mod vocab; its logits fall off with the
// distance from that token. Checks what Target's contract asks of its caller, and counts.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "espalier/decode/target.h"

namespace espalier::decode {

class FakeTarget : public Target {
 public:
  FakeTarget(int64_t vocab, int64_t context, int64_t rows)
      : vocab_(vocab), context_(context), rows_(rows) {}

  static TokenId next(const std::vector<TokenId>& text, int64_t vocab) {
    const auto sum = std::accumulate(text.begin(), text.end(), static_cast<int64_t>(text.size()));
    return static_cast<TokenId>(sum % vocab);
  }

  int64_t vocab_size() const override { return vocab_; }
  int64_t context_length() const override { return context_; }
  int64_t max_rows() const override { return rows_; }
  int64_t committed_length() const override { return static_cast<int64_t>(committed.size()); }

  Status reserve(int64_t positions) override {
    if (positions > reserve_limit)
      return Error{.what = "out of memory", .expected = "", .actual = "", .fix = ""};
    reserved = std::max(reserved, positions);
    return Ok{};
  }

  void run(const Window& window) override {
    ASSERT_LE(window.tokens.size(), static_cast<size_t>(rows_));
    ASSERT_EQ(window.tokens.size(), window.parents.size());
    window_.assign(window.tokens.begin(), window.tokens.end());
    parents_.assign(window.parents.begin(), window.parents.end());
    head_ = window.head;
    logits_.clear();
    for (const int32_t row : window.selected) {
      std::vector<TokenId> path;
      for (int32_t r = row; r >= 0; r = parents_[static_cast<size_t>(r)]) {
        ASSERT_LT(parents_[static_cast<size_t>(r)], r);
        path.insert(path.begin(), window_[static_cast<size_t>(r)]);
      }
      ASSERT_LE(committed_length() + static_cast<int64_t>(path.size()), reserved);
      std::vector<TokenId> text = committed;
      text.insert(text.end(), path.begin(), path.end());
      const TokenId best = next(text, vocab_);
      std::vector<float>& row_logits = logits_.emplace_back(static_cast<size_t>(vocab_));
      for (TokenId id = 0; id < vocab_; ++id) {
        row_logits[static_cast<size_t>(id)] = -static_cast<float>(std::abs(id - best));
      }
    }
    ++calls;
    rows += static_cast<int64_t>(window_.size());
  }

  TokenId argmax(int64_t selected_index) const override {
    EXPECT_EQ(head_, HeadKind::kArgmax);
    const auto& row = logits_.at(static_cast<size_t>(selected_index));
    return static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  }
  std::span<const float> logits(int64_t selected_index) const override {
    EXPECT_EQ(head_, HeadKind::kLogits);
    return logits_.at(static_cast<size_t>(selected_index));
  }
  void commit(std::span<const int32_t> path) override {
    EXPECT_EQ(committed_length() % commit_block, 0);
    EXPECT_EQ(static_cast<int64_t>(path.size()) % commit_block, 0);
    int32_t parent = -1;
    for (const int32_t row : path) {
      EXPECT_EQ(parents_.at(static_cast<size_t>(row)), parent);
      committed.push_back(window_.at(static_cast<size_t>(row)));
      parent = row;
    }
  }

  std::vector<TokenId> committed;
  int64_t commit_block = 1;  // paths are multiples of it
  int64_t reserved = 0;
  int64_t reserve_limit = INT64_MAX;
  int64_t calls = 0;
  int64_t rows = 0;

 private:
  int64_t vocab_, context_, rows_;
  std::vector<TokenId> window_;
  std::vector<int32_t> parents_;
  std::vector<std::vector<float>> logits_;
  HeadKind head_ = HeadKind::kNone;
};

}  // namespace espalier::decode
