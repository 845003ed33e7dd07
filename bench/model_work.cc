#include "bench/model_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "bench/command.h"
#include "espalier/base/clock.h"
#include "espalier/decode/step.h"
#include "espalier/measure/some_tokens.h"

namespace espalier::bench {
namespace {

constexpr int64_t kCallsPerSample = 3;  // of call, verify and batch: milliseconds each

struct KindInfo {
  WorkKind kind;
  std::string_view name;
  bool is_rate;
  bool in_window;  // the amount is rows of one call
  std::string_view help;
};
constexpr KindInfo kKinds[] = {
    {WorkKind::kPrefill, "prefill", true, false, "N tokens of a new text, the head on the last"},
    {WorkKind::kGenerate, "generate", true, false, "N tokens after a text of one, one by one"},
    {WorkKind::kDecode, "decode", true, false, "one token after the other, at N positions"},
    {WorkKind::kCall, "call", false, true, "a call of N rows on an empty text, one head"},
    {WorkKind::kVerify, "verify", false, true, "a call of N rows after 32 positions, N heads"},
    {WorkKind::kBatch, "batch", true, true, "N continuations of a text of 32 in one call, N heads"},
};

const KindInfo& info_of(WorkKind kind) { return *std::ranges::find(kKinds, kind, &KindInfo::kind); }

}  // namespace

Result<Work> parse_work(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const auto kind = std::ranges::find(kKinds, text.substr(0, colon), &KindInfo::name);
  if (kind == std::end(kKinds) || colon == text.size()) {
    return Error{.what = "no such work",
                 .expected = "KIND:N, like prefill:512",
                 .actual = fmt::format("'{}'", text),
                 .fix = "See --help."};
  }
  ASSIGN_OR_RETURN(const int64_t amount,
                   parse_integer(text.substr(colon + 1), 1, int64_t{1} << 24));
  return Work{kind->kind, amount};
}

std::string name_of(const Work& work) {
  return fmt::format("{}:{}", info_of(work.kind).name, work.amount);
}

std::string work_help() {
  std::string help;
  for (const KindInfo& kind : kKinds) {
    help += fmt::format("{:>27}{:<10} {}\n", "", fmt::format("{}:N", kind.name), kind.help);
  }
  return help;
}

WorkRun::WorkRun(const engine::Engine& engine, const Work& work,
                 std::unique_ptr<engine::ExecutableTarget> target)
    : work_(work),
      target_(std::move(target)),
      windows_(engine.options().window),
      tokens_(
          measure::some_tokens(std::max(work.amount, kTextPositions), engine.model().vocab_size)) {}

Result<std::unique_ptr<WorkRun>> WorkRun::create(const engine::Engine& engine, const Work& work,
                                                 int64_t rounds) {
  if (info_of(work.kind).in_window && work.amount > engine.options().window) {
    return Error{.what = name_of(work) + " does not fit into a call",
                 .expected = fmt::format("at most {} rows", engine.options().window),
                 .actual = fmt::format("{}", work.amount),
                 .fix = "Use a larger --window."};
  }
  ASSIGN_OR_RETURN(auto target, engine::ExecutableTarget::create(engine));
  auto run = std::unique_ptr<WorkRun>(new WorkRun(engine, work, std::move(target)));
  const Status prepared = run->prepare(rounds);
  if (!prepared.ok()) return prepared.error().with_context(name_of(work));
  return run;
}

Status WorkRun::prepare(int64_t rounds) {
  switch (work_.kind) {
    case WorkKind::kPrefill:
      return target_->reserve(work_.amount);
    case WorkKind::kGenerate:
      return target_->reserve(work_.amount + 1);
    case WorkKind::kDecode:
      RETURN_IF_ERROR(target_->reserve(std::max(work_.amount, rounds * kDecodeTokens + 1)));
      run_tokens(std::max<int64_t>(work_.amount - rounds * kDecodeTokens, 1));
      return Ok{};
    case WorkKind::kCall:
      return Ok{};
    case WorkKind::kVerify:
    case WorkKind::kBatch:
      roots_.assign(static_cast<size_t>(work_.amount), -1);
      rows_.resize(roots_.size());
      std::iota(rows_.begin(), rows_.end(), 0);
      RETURN_IF_ERROR(target_->reserve(kTextPositions));
      run_tokens(kTextPositions);
      return Ok{};
  }
  return Ok{};
}

void WorkRun::run_tokens(int64_t count) {
  static const std::atomic<bool> kNeverCancelled{false};
  decode::Speculator nobody({}, windows_.max_rows());
  decode::run_chain({*target_, windows_, kNeverCancelled, nobody},
                    std::span(tokens_).first(static_cast<size_t>(count)), decode::HeadRows::kLast,
                    decode::HeadKind::kArgmax);
}

void WorkRun::decode(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const TokenId token = target_->argmax(0);
    target_->run(windows_.chain({&token, 1}, decode::HeadKind::kArgmax, 1));
    target_->commit(windows_.path(1));
  }
}

double WorkRun::time_calls(const decode::Window& window) {
  const Stopwatch watch;
  for (int64_t call = 0; call < kCallsPerSample; ++call) target_->run(window);
  return watch.elapsed_ms() / static_cast<double>(kCallsPerSample);
}

Result<double> WorkRun::sample_ms() {
  const auto amount = static_cast<size_t>(work_.amount);
  const auto tokens = std::span(tokens_).first(amount);
  if (work_.kind == WorkKind::kPrefill || work_.kind == WorkKind::kGenerate) {
    RETURN_IF_ERROR(target_->truncate(0));
  }
  if (work_.kind == WorkKind::kGenerate) run_tokens(1);
  const Stopwatch watch;
  switch (work_.kind) {
    case WorkKind::kPrefill:
      run_tokens(work_.amount);
      return watch.elapsed_ms();
    case WorkKind::kGenerate:
      decode(work_.amount);
      return watch.elapsed_ms();
    case WorkKind::kDecode:
      decode(kDecodeTokens);
      return watch.elapsed_ms();
    case WorkKind::kCall:
      return time_calls(windows_.chain(tokens, decode::HeadKind::kArgmax, 1));
    case WorkKind::kVerify:
      return time_calls(windows_.chain(tokens, decode::HeadKind::kArgmax, work_.amount));
    case WorkKind::kBatch:
      return time_calls({tokens, roots_, rows_, decode::HeadKind::kArgmax});
  }
  return 0.0;
}

double WorkRun::chain_floor_ms(const ModelFloor& floor) const {
  double ms = 0;
  for (int64_t first = 0; first < work_.amount; first += windows_.max_rows()) {
    const int64_t rows = std::min(windows_.max_rows(), work_.amount - first);
    ms += floor.call_ms({rows, first, first + rows == work_.amount ? 1 : 0});
  }
  return ms;
}

// `count` calls of one row, the last after `last` positions.
double WorkRun::decode_floor_ms(const ModelFloor& floor, int64_t count, int64_t last) const {
  const double middle = floor.call_ms({1, std::max<int64_t>(last - count / 2, 0), 1});
  return static_cast<double>(count) * middle;  // KV grows by the same bytes with each
}

double WorkRun::floor_ms(const ModelFloor& floor) const {
  switch (work_.kind) {
    case WorkKind::kPrefill:
      return chain_floor_ms(floor);
    case WorkKind::kGenerate:
      return decode_floor_ms(floor, work_.amount, work_.amount);
    case WorkKind::kDecode:
      return decode_floor_ms(floor, kDecodeTokens, work_.amount);
    case WorkKind::kCall:
      return floor.call_ms({work_.amount, 0, 1});
    case WorkKind::kVerify:
    case WorkKind::kBatch:
      return floor.call_ms({work_.amount, kTextPositions, work_.amount});
  }
  return 0;
}

double WorkRun::tokens() const {
  return static_cast<double>(work_.kind == WorkKind::kDecode ? kDecodeTokens : work_.amount);
}

bool WorkRun::is_rate() const { return info_of(work_.kind).is_rate; }

}  // namespace espalier::bench
