// Session: one timeline of tokens on an engine. It keeps the KV of what it has run, so a text that
// begins like the last one (a chat's next turn) is continued: the common beginning is kept, the
// rest is cut off. Refers to its engine. One caller at a time; only cancel() may come from other
// threads or signal handlers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/decode/logprobs.h"
#include "espalier/decode/sampling.h"
#include "espalier/decode/speculation.h"
#include "espalier/decode/step.h"
#include "espalier/engine/engine.h"

namespace espalier::engine {

class ExecutableTarget;

struct GenerateOptions {
  decode::SamplingOptions sampling = {};
  std::optional<int64_t> max_tokens = {};  // absent: as many as the context has room for
  std::optional<int> logprobs = {};  // also report the n most probable tokens, 0 to kMaxLogprobs
  bool ignore_end_tokens = false;
  decode::SpeculationOptions speculation = {};  // changes when tokens come, never which
};
inline constexpr int kMaxLogprobs = 100;

// A token of an answer. Log-probabilities are the model's own, before penalties, temperature and
// truncation; they are there where options.logprobs is. Valid during the call of the sink.
struct AnswerToken {
  TokenId id = 0;
  std::optional<float> logprob = {};
  std::span<const decode::TokenLogprob> best = {};  // best first
};
// Returns whether to go on.
using AnswerSink = std::function<bool(const AnswerToken& token)>;

struct Timings {
  double prefill_ms = 0;
  double ttft_ms = 0;         // from the call of generate() to the first token
  double decode_ms = 0;       // from the first token to the last
  int64_t decode_tokens = 0;  // those after the first
  int64_t calls = 0;          // of the program
  int64_t rows = 0;           // of all calls
  double decode_tok_s() const;
};

struct Answer {
  std::vector<TokenId> tokens;  // with the end token
  decode::FinishReason finish_reason = decode::FinishReason::kLength;
  std::optional<Error> error = {};  // with kError: why the answer ends here
  int64_t reused_tokens = 0;        // of the prompt: their KV was still there
  int64_t max_tokens = 0;           // after clipping to the context
  bool clipped = false;             // options.max_tokens was more than the context has room for
  Timings timings;
  decode::SpeculationStatistics speculation;
};

// For each token after the first: the model's log-probability of it, and the token it holds most
// probable.
struct Score {
  std::vector<float> logprobs;       // [tokens - 1] natural logarithms
  std::vector<TokenId> best_tokens;  // [tokens - 1]
  Timings timings;
  double perplexity() const;
};

class Session {
 public:
  // Fails where there is no memory for the smallest KV cache.
  static Result<std::unique_ptr<Session>> create(const Engine& engine);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Continues `prompt`, the whole text so far. Errors: an empty prompt, one beyond the context, ids
  // that the model does not have, options out of range, no memory for the prompt. Where memory ends
  // later, there is an answer: what was said, and the error in it.
  Result<Answer> generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                          const AnswerSink& sink);
  // Teacher-forced; a single token has nothing to predict. Starts from an empty state. Errors: as
  // of generate() for the prompt; cancelled; no memory.
  Result<Score> score(std::span<const TokenId> tokens);

  // Ends the running generate() or score() before its next call of the program; one that is over
  // but for its return is cancelled too. Where none runs, the next one ends at once.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  std::span<const TokenId> tokens() const { return history_; }  // whose KV is there
  int64_t kv_bytes() const;
  // Why the last cycle of generate() verified as many guesses as it did, for people.
  std::string explain_speculation() const { return speculator_.explain(); }
  // Milliseconds of a call by its rows, as this session has measured them, 0 where it has not; and those
  // of an earlier session of the same model to begin with.
  std::vector<double> call_costs_ms() const { return speculator_.costs().measured_ms(); }
  void adopt_call_costs(std::span<const double> call_ms) { speculator_.costs().adopt(call_ms); }

 private:
  Session(const Engine& engine, std::unique_ptr<ExecutableTarget> target,
          std::vector<std::unique_ptr<decode::Drafter>> drafters);
  Status check_tokens(std::span<const TokenId> tokens) const;
  Status reuse(std::span<const TokenId> prompt, bool speculates);
  Status run_answer(std::span<const TokenId> prompt, const GenerateOptions& options,
                    const AnswerSink& sink, Answer& answer);
  decode::Timeline timeline();
  Status run_score(std::span<const TokenId> tokens, Score& score);
  // The end of every generate() and score(): whether it was cancelled.
  bool finish(Timings& timings);

  const Engine& engine_;
  std::unique_ptr<ExecutableTarget> target_;
  decode::ChainWindows windows_;
  decode::Speculator speculator_;  // keeps what it has learned from one answer to the next
  std::vector<TokenId> history_;   // during a call also what is not committed yet
  std::atomic<bool> cancelled_{false};
};
static_assert(std::atomic<bool>::is_always_lock_free);  // cancel() from a signal handler

}  // namespace espalier::engine
