#include "espalier/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "espalier/base/clock.h"
#include "espalier/decode/ngram_drafter.h"
#include "espalier/engine/dspark_drafter.h"
#include "espalier/engine/executable_target.h"
#include "espalier/program/validate.h"

namespace espalier::engine {
namespace {

// Log-probabilities of a row of logits, for the sink; `best` is sized before decoding starts.
AnswerToken report(TokenId token, std::span<const float> logits,
                   std::span<decode::TokenLogprob> best) {
  const double total = decode::log_sum_exp(logits);
  decode::best_logprobs(logits, total, best);
  return {.id = token,
          .logprob = static_cast<float>(logits[static_cast<size_t>(token)] - total),
          .best = best};
}

Error no_memory() {
  return out_of_memory_error("no memory for the text", {},
                             "Close other programs, or use a shorter text.");
}

Status check_speculation(const decode::SpeculationOptions& options) {
  constexpr int64_t kMost = program::kMaxWindowRows - 1;
  if (options.draft_tokens >= 0 && options.draft_tokens <= kMost) return Ok{};
  return Error{.what = "the number of draft tokens is out of range",
               .expected = fmt::format("0 (chosen by the engine) to {}", kMost),
               .actual = fmt::format("{}", options.draft_tokens),
               .fix = "Choose a number inside the range."};
}

Status check_logprobs(const std::optional<int>& logprobs) {
  if (!logprobs || (*logprobs >= 0 && *logprobs <= kMaxLogprobs)) return Ok{};
  return Error{.what = "the number of log-probabilities is out of range",
               .expected = fmt::format("0 to {}", kMaxLogprobs),
               .actual = fmt::format("{}", *logprobs),
               .fix = "Choose a number inside the range."};
}

Result<std::vector<std::unique_ptr<decode::Drafter>>> make_drafters(const Engine& engine) {
  std::vector<std::unique_ptr<decode::Drafter>> drafters;
  drafters.push_back(std::make_unique<decode::NgramDrafter>());
  if (engine.draft_network() != nullptr) {
    ASSIGN_OR_RETURN(drafters.emplace_back(),
                     DSparkDrafter::create(engine, engine.options().window));
  }
  return drafters;
}

}  // namespace

double Timings::decode_tok_s() const {
  return decode_tokens > 0 && decode_ms > 0 ? static_cast<double>(decode_tokens) * 1e3 / decode_ms
                                            : 0;
}

double Score::perplexity() const {
  double sum = 0;
  for (const float logprob : logprobs) sum += static_cast<double>(logprob);
  return logprobs.empty() ? 1 : std::exp(-sum / static_cast<double>(logprobs.size()));
}

Result<std::unique_ptr<Session>> Session::create(const Engine& engine) {
  try {
    ASSIGN_OR_RETURN(std::unique_ptr<ExecutableTarget> target, ExecutableTarget::create(engine));
    ASSIGN_OR_RETURN(auto drafters, make_drafters(engine));
    return std::unique_ptr<Session>(new Session(engine, std::move(target), std::move(drafters)));
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Session::Session(const Engine& engine, std::unique_ptr<ExecutableTarget> target,
                 std::vector<std::unique_ptr<decode::Drafter>> drafters)
    : engine_(engine),
      target_(std::move(target)),
      windows_(target_->max_rows()),
      speculator_(std::move(drafters), target_->max_rows()) {
  history_.reserve(static_cast<size_t>(target_->context_length()) + 1);
}

Session::~Session() = default;

int64_t Session::kv_bytes() const { return target_->kv_bytes(); }

decode::Timeline Session::timeline() { return {*target_, windows_, cancelled_, speculator_}; }

Status Session::check_tokens(std::span<const TokenId> tokens) const {
  if (tokens.empty()) {
    return Error{.what = "the prompt is empty",
                 .expected = "at least one token",
                 .actual = "none",
                 .fix = "Give some text."};
  }
  if (static_cast<int64_t>(tokens.size()) > target_->context_length()) {
    const models::Model& model = engine_.model();
    const bool is_whole = target_->context_length() == model.context_length;
    const bool has_reason = is_whole && !model.context_reason.empty();
    return Error{.what = "the prompt is longer than the context",
                 .expected = fmt::format("at most {} tokens{}", target_->context_length(),
                                         has_reason ? ", " + model.context_reason : ""),
                 .actual = fmt::format("{} tokens", tokens.size()),
                 .fix = is_whole ? "Shorten the prompt: the model has no longer context."
                                 : "Shorten the prompt, or raise --context."};
  }
  const auto bad = std::ranges::find_if(
      tokens, [this](TokenId token) { return token < 0 || token >= target_->vocab_size(); });
  if (bad != tokens.end()) {
    return Error{.what = fmt::format("token {} of the prompt does not exist", bad - tokens.begin()),
                 .expected = fmt::format("ids from 0 to {}", target_->vocab_size() - 1),
                 .actual = fmt::format("{}", *bad),
                 .fix = "Use the tokenizer of this model."};
  }
  return Ok{};
}

// Keeps the KV of the common beginning; at least one token is left to run, for its head. What a
// drafter that will be asked has not observed is run again.
Status Session::reuse(std::span<const TokenId> prompt, bool speculates) {
  const auto [mismatch, unused] = std::ranges::mismatch(history_, prompt.first(prompt.size() - 1));
  int64_t kept = mismatch - history_.begin();
  if (speculates) kept = std::min(kept, speculator_.observed_length());
  RETURN_IF_ERROR(target_->truncate(kept));
  RETURN_IF_ERROR(speculator_.truncate(target_->committed_length()));
  history_.assign(prompt.begin(), prompt.end());
  return target_->reserve(static_cast<int64_t>(prompt.size()));
}

bool Session::finish(Timings& timings) {
  timings.calls += target_->calls();
  timings.rows += target_->rows();
  history_.resize(static_cast<size_t>(target_->committed_length()));
  return cancelled_.exchange(false, std::memory_order_relaxed);
}

Status Session::run_answer(std::span<const TokenId> prompt, const GenerateOptions& options,
                           const AnswerSink& sink, Answer& answer) try {
  const Stopwatch watch;
  const bool speculates = options.speculation.mode != decode::SpeculationMode::kOff;
  RETURN_IF_ERROR(reuse(prompt, speculates));
  answer.reused_tokens = target_->committed_length();
  const bool needs_logits = !decode::is_plain_greedy(options.sampling) || options.logprobs;
  const auto head = needs_logits ? decode::HeadKind::kLogits : decode::HeadKind::kArgmax;
  const int64_t most_rows =
      decode::Speculator::max_row_count(options.speculation, target_->max_rows());
  if (needs_logits) RETURN_IF_ERROR(target_->prepare_logits(most_rows));
  RETURN_IF_ERROR(speculator_.begin(options.speculation, prompt,
                                    static_cast<int64_t>(prompt.size()) + answer.max_tokens));
  ASSIGN_OR_RETURN(decode::Sampler sampler,
                   decode::Sampler::make(options.sampling, target_->vocab_size()));
  sampler.observe_prompt(prompt);
  std::vector<decode::TokenLogprob> best(
      static_cast<size_t>(std::min<int64_t>(options.logprobs.value_or(0), target_->vocab_size())));
  answer.tokens.reserve(static_cast<size_t>(answer.max_tokens));

  const auto rest = prompt.subspan(static_cast<size_t>(answer.reused_tokens));
  // finish() says that it was cancelled.
  if (!decode::run_chain(timeline(), rest, decode::HeadRows::kLast, head)) return Ok{};
  answer.timings.prefill_ms = watch.elapsed_ms();
  const decode::GenerateLimits limits{
      .max_tokens = answer.max_tokens,
      .end_tokens = options.ignore_end_tokens ? std::span<const TokenId>() : engine_.end_tokens()};
  const auto receive = [&](TokenId token, std::span<const float> logits) {
    answer.tokens.push_back(token);
    history_.push_back(token);
    if (answer.tokens.size() == 1) answer.timings.ttft_ms = watch.elapsed_ms();
    answer.timings.decode_ms = watch.elapsed_ms() - answer.timings.ttft_ms;
    return sink(options.logprobs ? report(token, logits, best) : AnswerToken{.id = token});
  };
  const auto reason = decode::generate(timeline(), sampler, head, limits, receive);
  answer.speculation = speculator_.statistics();
  answer.finish_reason = reason.ok() ? *reason : decode::FinishReason::kError;
  if (!reason.ok()) answer.error = reason.error();  // what was said is not lost
  answer.timings.decode_tokens =
      std::max<int64_t>(static_cast<int64_t>(answer.tokens.size()) - 1, 0);
  return Ok{};
} catch (const std::bad_alloc&) {
  return no_memory();
}

Result<Answer> Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                 const AnswerSink& sink) {
  RETURN_IF_ERROR(check_tokens(prompt));
  RETURN_IF_ERROR(check_logprobs(options.logprobs));
  RETURN_IF_ERROR(check_speculation(options.speculation));
  if (options.max_tokens && *options.max_tokens < 0) {
    return Error{.what = "the largest number of tokens is negative",
                 .expected = "0 or more",
                 .actual = fmt::format("{}", *options.max_tokens),
                 .fix = "Choose another --max-tokens."};
  }
  Answer answer;
  const int64_t room = target_->context_length() - static_cast<int64_t>(prompt.size());
  answer.max_tokens = std::min(options.max_tokens.value_or(room), room);
  answer.clipped = options.max_tokens.value_or(room) > room;
  answer.timings.calls = -target_->calls();
  answer.timings.rows = -target_->rows();
  const Status status = run_answer(prompt, options, sink, answer);
  const bool cancelled = finish(answer.timings);
  if (!status.ok()) return status.error();
  if (cancelled) answer.finish_reason = decode::FinishReason::kCancelled;
  return answer;
}

Status Session::run_score(std::span<const TokenId> tokens, Score& score) try {
  const Stopwatch watch;
  RETURN_IF_ERROR(target_->truncate(0));
  RETURN_IF_ERROR(speculator_.truncate(0));
  RETURN_IF_ERROR(speculator_.begin({}, tokens, 0));
  RETURN_IF_ERROR(target_->reserve(static_cast<int64_t>(tokens.size())));
  RETURN_IF_ERROR(target_->prepare_logits(target_->max_rows()));
  history_.assign(tokens.begin(), tokens.end());
  score.logprobs.reserve(tokens.size());
  score.best_tokens.reserve(tokens.size());
  const auto read_heads = [&](int64_t first_row, int64_t row_count) {
    for (int64_t row = 0; row < row_count; ++row) {
      const auto logits = target_->logits(row);
      const TokenId next = tokens[static_cast<size_t>(first_row + row + 1)];
      score.logprobs.push_back(
          static_cast<float>(logits[static_cast<size_t>(next)] - decode::log_sum_exp(logits)));
      score.best_tokens.push_back(decode::argmax(logits));
    }
  };
  // finish() says whether it was cancelled.
  (void)decode::run_chain(timeline(), tokens.first(tokens.size() - 1), decode::HeadRows::kAll,
                          decode::HeadKind::kLogits, read_heads);
  score.timings.prefill_ms = watch.elapsed_ms();
  return Ok{};
} catch (const std::bad_alloc&) {
  return no_memory();
}

Result<Score> Session::score(std::span<const TokenId> tokens) {
  RETURN_IF_ERROR(check_tokens(tokens));
  Score score;
  score.timings.calls = -target_->calls();
  score.timings.rows = -target_->rows();
  const Status status = run_score(tokens, score);
  const bool cancelled = finish(score.timings);
  if (!status.ok()) return status.error();
  if (cancelled) {
    return Error{.what = "scoring was cancelled", .expected = "", .actual = "", .fix = ""};
  }
  return score;
}

}  // namespace espalier::engine
