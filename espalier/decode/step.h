// The two loops of decoding over a Target: run_chain (prefill, scoring) fills windows with known
// tokens; generate chooses new ones, in cycles of one call each: a tree of guesses is verified, and
// the tokens that the model would have chosen one by one are taken from it. Neither allocates
// inside a step. One caller at a time; `cancelled` may be set by any thread or signal handler and is
// looked at before every call of the target.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "espalier/base/result.h"
#include "espalier/decode/sampling.h"
#include "espalier/decode/speculation.h"
#include "espalier/decode/target.h"
#include "espalier/decode/window.h"

namespace espalier::decode {

enum class FinishReason : uint8_t {
  kStop,       // an end token, or the receiver had enough
  kLength,     // max_tokens
  kCancelled,  // by the caller
  kError,      // there is no memory for a longer text; what was said before stands
};

// The rows of a chain whose head is wanted.
enum class HeadRows : uint8_t { kLast, kAll };

// A sequence being decoded: what both loops need.
struct Timeline {
  Target& target;
  const ChainWindows& windows;
  const std::atomic<bool>& cancelled;
  Speculator& speculator;  // has begun, maybe with SpeculationMode::kOff
};

// Heads of rows [first_row, first_row + row_count) of the chain are ready in the target, or only
// that of the last one with HeadRows::kLast.
using WindowDone = std::function<void(int64_t first_row, int64_t row_count)>;

// Runs and commits `tokens` in full windows; the last one may be shorter. The target has room for
// them (reserve). False: cancelled between two windows; those that have run stay committed.
bool run_chain(const Timeline& timeline, std::span<const TokenId> tokens, HeadRows rows,
               HeadKind head, const WindowDone& window_done = nullptr);

// A new token. `logits` is the raw row it was chosen from; empty with HeadKind::kArgmax. Returns
// whether to go on.
using TokenSink = std::function<bool(TokenId token, std::span<const float> logits)>;

struct GenerateLimits {
  int64_t max_tokens = 0;
  std::span<const TokenId> end_tokens = {};  // each ends the answer, and is its last token
};

// Decodes until an end; the tokens are the same whatever the speculator guesses. The head of the last committed row must be there (run_chain with
// HeadRows::kLast); where logits are wanted, the target has room for those of all rows that the
// speculator may ask for. The last token is chosen but not run, so it is not committed. Fails only
// where the target cannot grow, after the sink has had every token up to there.
Result<FinishReason> generate(const Timeline& timeline, Sampler& sampler, HeadKind head,
                              const GenerateLimits& limits, const TokenSink& sink);

}  // namespace espalier::decode
