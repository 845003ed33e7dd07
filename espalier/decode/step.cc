#include "espalier/decode/step.h"

#include <algorithm>
#include <vector>

#include "espalier/base/clock.h"

namespace espalier::decode {
namespace {

// One answer on its way: tokens are chosen and given away until an end.
class AnswerLoop {
 public:
  AnswerLoop(const Timeline& timeline, Sampler& sampler, HeadKind head,
             const GenerateLimits& limits, const TokenSink& sink)
      : timeline_(timeline),
        target_(timeline.target),
        sampler_(sampler),
        head_(head),
        limits_(limits),
        speculator_(timeline.speculator),
        sink_(sink) {
    const auto rows = static_cast<size_t>(timeline.windows.max_rows());
    path_.reserve(rows);
    chosen_.reserve(rows);
  }

  // The next token, from the head of a selected row; `position` is the token's.
  TokenId choose(int64_t selected_index, int64_t position) {
    const bool has_logits = head_ == HeadKind::kLogits;
    const auto logits = has_logits ? target_.logits(selected_index) : std::span<const float>();
    const TokenId token =
        has_logits ? sampler_.sample(logits, position) : target_.argmax(selected_index);
    sampler_.observe_answer(token);
    speculator_.append(token);
    ++count_;
    const bool is_end = std::ranges::find(limits_.end_tokens, token) != limits_.end_tokens.end();
    const bool is_stopped = !sink_(token, logits) || is_end;
    reason_ = is_stopped ? FinishReason::kStop : FinishReason::kLength;
    has_ended_ = is_stopped || count_ == limits_.max_tokens;
    return token;
  }

  // One call for the last token chosen and what the speculator guesses after it, then the walk from
  // there along the tokens that the model chooses. Fails where the target cannot grow.
  Status cycle() {
    const int64_t position = target_.committed_length();
    const DraftTree& tree =
        speculator_.propose(limits_.max_tokens - count_ - 1, target_.max_rows());
    if (!target_.reserve(position + 1 + speculator_.depth()).ok()) {
      (void)speculator_.propose(0, 1);  // no room for guesses: the answer goes on without
      RETURN_IF_ERROR(target_.reserve(position + 1));
    }
    const auto rows = static_cast<size_t>(speculator_.row_count());
    const Stopwatch watch;
    target_.run({.tokens = tree.tokens().first(rows),
                 .parents = tree.parents().first(rows),
                 .selected = timeline_.windows.path(speculator_.row_count()),
                 .head = head_});
    const double verify_ms = watch.elapsed_ms();
    path_.clear();
    chosen_.clear();
    for (int32_t row = kRoot; row != kNoNode && row < speculator_.row_count() && !has_ended_;) {
      path_.push_back(row);
      chosen_.push_back(choose(row, position + static_cast<int64_t>(path_.size())));
      row = tree.child(row, chosen_.back());
    }
    target_.commit(path_);
    speculator_.observe(target_, path_);
    speculator_.learn(chosen_, verify_ms, watch.elapsed_ms() - verify_ms);
    return Ok{};
  }

  bool has_ended() const { return has_ended_; }
  FinishReason reason() const { return reason_; }  // where it has ended

 private:
  const Timeline& timeline_;
  Target& target_;
  Sampler& sampler_;
  const HeadKind head_;
  const GenerateLimits& limits_;
  Speculator& speculator_;
  const TokenSink& sink_;
  int64_t count_ = 0;
  bool has_ended_ = false;
  FinishReason reason_ = FinishReason::kLength;
  std::vector<int32_t> path_;    // rows of the walk
  std::vector<TokenId> chosen_;  // from their heads
};

}  // namespace

bool run_chain(const Timeline& timeline, std::span<const TokenId> tokens, HeadRows rows,
               HeadKind head, const WindowDone& window_done) {
  for (size_t first = 0; first < tokens.size();) {
    if (timeline.cancelled.load(std::memory_order_relaxed)) return false;
    const auto room = static_cast<size_t>(timeline.target.max_rows());
    const auto window = tokens.subspan(first, std::min(room, tokens.size() - first));
    const auto row_count = static_cast<int64_t>(window.size());
    const bool is_last = first + window.size() == tokens.size();
    const int64_t last_alone = is_last ? 1 : 0;
    const int64_t selected = rows == HeadRows::kAll ? row_count : last_alone;
    timeline.target.run(timeline.windows.chain(window, head, selected));
    timeline.target.commit(timeline.windows.path(row_count));
    timeline.speculator.observe(timeline.target, timeline.windows.path(row_count));
    if (window_done) window_done(static_cast<int64_t>(first), row_count);
    first += window.size();
  }
  return true;
}

Result<FinishReason> generate(const Timeline& timeline, Sampler& sampler, HeadKind head,
                              const GenerateLimits& limits, const TokenSink& sink) {
  if (limits.max_tokens <= 0) return FinishReason::kLength;
  AnswerLoop answer(timeline, sampler, head, limits, sink);
  answer.choose(0, timeline.target.committed_length());
  while (!answer.has_ended()) {
    if (timeline.cancelled.load(std::memory_order_relaxed)) return FinishReason::kCancelled;
    RETURN_IF_ERROR(answer.cycle());
  }
  return answer.reason();
}

}  // namespace espalier::decode
