// ExecutableTarget: decode::Target over an executable and one state of it: looks up embeddings,
// chooses the bucket's function, reads heads. Owns state and buffers; refers to its engine. One
// caller at a time. run() and commit() do not allocate; reserve() and prepare() may.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/decode/target.h"
#include "espalier/engine/engine.h"
#include "espalier/units/unit.h"

namespace espalier::engine {

class ExecutableTarget : public decode::Target {
 public:
  static Result<std::unique_ptr<ExecutableTarget>> create(const Engine& engine);

  int64_t vocab_size() const override { return engine_.model().vocab_size; }
  int64_t context_length() const override { return engine_.options().context; }
  int64_t max_rows() const override { return engine_.options().window; }
  int64_t committed_length() const override { return state_->committed_length(); }
  Status reserve(int64_t positions) override;
  void run(const decode::Window& window) override;
  TokenId argmax(int64_t selected_index) const override;
  std::span<const float> logits(int64_t selected_index) const override;
  std::span<const float> taps(int64_t row) const override;
  void commit(std::span<const int32_t> path) override;

  // Makes room for the logits of `selected_rows` rows in a window.
  Status prepare_logits(int64_t selected_rows);
  // Keeps the first `length` positions; fewer, maybe none, where the unit cannot cut there.
  Status truncate(int64_t length);

  const units::State& state() const { return *state_; }
  int64_t calls() const { return calls_; }
  int64_t rows() const { return rows_; }  // of all calls
  int64_t kv_bytes() const { return state_->byte_count(); }

 private:
  ExecutableTarget(const Engine& engine,
                   std::unique_ptr<units::State> state);  // may throw bad_alloc

  const Engine& engine_;
  std::unique_ptr<units::State> state_;
  size_t bucket_ = 0;
  int64_t embedding_index_ = 0;
  std::vector<float> embeddings_;     // [window, hidden]
  std::vector<int32_t> positions_;    // [window]
  std::vector<float> max_values_;     // [window, subranges]
  std::vector<int32_t> max_indices_;  // [window, subranges]
  std::vector<float> logits_;         // [prepared rows, vocab]
  std::vector<float> taps_;           // [window, channels of the taps]
  int64_t calls_ = 0;
  int64_t rows_ = 0;
};

}  // namespace espalier::engine
