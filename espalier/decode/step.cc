#include "espalier/decode/step.h"

#include <algorithm>

namespace espalier::decode {

bool run_chain(const Timeline& timeline, std::span<const TokenId> tokens, HeadRows rows,
               HeadKind head, const WindowDone& window_done) {
  const auto window_rows = static_cast<size_t>(timeline.windows.max_rows());
  for (size_t first = 0; first < tokens.size(); first += window_rows) {
    if (timeline.cancelled.load(std::memory_order_relaxed)) return false;
    const auto window = tokens.subspan(first, std::min(window_rows, tokens.size() - first));
    const auto row_count = static_cast<int64_t>(window.size());
    const bool is_last = first + window.size() == tokens.size();
    const int64_t last_alone = is_last ? 1 : 0;
    const int64_t selected = rows == HeadRows::kAll ? row_count : last_alone;
    timeline.target.run(timeline.windows.chain(window, head, selected));
    timeline.target.commit(timeline.windows.path(row_count));
    if (window_done) window_done(static_cast<int64_t>(first), row_count);
  }
  return true;
}

Result<FinishReason> generate(const Timeline& timeline, Sampler& sampler, HeadKind head,
                              const GenerateLimits& limits, const TokenSink& sink) {
  Target& target = timeline.target;
  for (int64_t count = 1; count <= limits.max_tokens; ++count) {
    const auto logits = head == HeadKind::kLogits ? target.logits(0) : std::span<const float>();
    const TokenId token = head == HeadKind::kLogits
                              ? sampler.sample(logits, target.committed_length())
                              : target.argmax(0);
    sampler.observe_answer(token);
    if (!sink(token, logits)) return FinishReason::kStop;
    if (std::ranges::find(limits.end_tokens, token) != limits.end_tokens.end()) {
      return FinishReason::kStop;
    }
    if (count == limits.max_tokens) break;
    RETURN_IF_ERROR(target.reserve(target.committed_length() + 1));
    if (!run_chain(timeline, {&token, 1}, HeadRows::kLast, head)) return FinishReason::kCancelled;
  }
  return FinishReason::kLength;
}

}  // namespace espalier::decode
