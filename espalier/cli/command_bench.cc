// espalier bench: calls, prefill and decoding of a model, beside the read floor of the same minute.
#include <fmt/format.h>

#include <map>

#include "espalier/base/clock.h"
#include "espalier/base/threads.h"
#include "espalier/base/utf8.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/terminal.h"
#include "espalier/decode/window.h"
#include "espalier/engine/executable_target.h"
#include "espalier/engine/session.h"
#include "espalier/measure/read_floor.h"
#include "espalier/measure/some_tokens.h"
#include "espalier/measure/statistics.h"

namespace espalier::cli {
namespace {

constexpr int64_t kFloorBytes = int64_t{256} << 20;  // of the read floor's buffer: beyond any cache
constexpr int64_t kPrefillTokens = 256;
constexpr int64_t kDecodeTokens = 64;
constexpr int64_t kCallsPerRound = 3;

std::vector<int64_t> row_counts(int64_t window) {
  std::vector<int64_t> counts;
  for (int64_t rows = 1; rows < window; rows *= 2) counts.push_back(rows);
  counts.push_back(window);
  return counts;
}

struct Samples {
  std::map<int64_t, std::vector<double>> call_ms;  // by rows
  std::vector<double> prefill_tok_s, decode_tok_s;
  std::vector<double> read_bytes_s;  // the floor
};

// Calls of `rows` rows on an empty state, with the argmax head on the last one. Nothing is
// committed.
void measure_calls(engine::ExecutableTarget& target, int64_t rows, std::vector<double>& call_ms) {
  const decode::ChainWindows windows(rows);
  const std::vector<TokenId> tokens = measure::some_tokens(rows, target.vocab_size());
  for (int64_t call = 0; call < kCallsPerRound; ++call) {
    const Stopwatch watch;
    target.run(windows.chain(tokens, decode::HeadKind::kArgmax, 1));
    call_ms.push_back(watch.elapsed_ms());
  }
}

Status measure_answer(const engine::Engine& engine, const Options& options, Samples& samples) {
  ASSIGN_OR_RETURN(const auto session, engine::Session::create(engine));
  const int64_t decoded = options.max_tokens.value_or(kDecodeTokens);
  const int64_t prompt =
      std::min(kPrefillTokens, std::max<int64_t>(engine.options().context - decoded, 1));
  const engine::GenerateOptions generate{.max_tokens = decoded, .ignore_end_tokens = true};
  ASSIGN_OR_RETURN(const engine::Answer answer,
                   session->generate(measure::some_tokens(prompt, engine.model().vocab_size),
                                     generate, [](const engine::AnswerToken&) { return true; }));
  samples.prefill_tok_s.push_back(static_cast<double>(prompt) * 1e3 / answer.timings.prefill_ms);
  samples.decode_tok_s.push_back(answer.timings.decode_tok_s());
  return Ok{};
}

Result<Samples> measure_all(const engine::Engine& engine, const Options& options) {
  Samples samples;
  ASSIGN_OR_RETURN(const auto target, engine::ExecutableTarget::create(engine));
  const auto threads = static_cast<int>(options.threads);
  ASSIGN_OR_RETURN(
      const auto floor,
      measure::ReadFloor::create(threads > 0 ? threads : physical_core_count(), kFloorBytes));
  floor->measure();  // touches the buffer
  std::vector<double> warm_up;
  measure_calls(*target, engine.options().window, warm_up);
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (const int64_t rows : row_counts(engine.options().window)) {
      samples.read_bytes_s.push_back(floor->measure());
      measure_calls(*target, rows, samples.call_ms[rows]);
    }
    RETURN_IF_ERROR(measure_answer(engine, options, samples));
    remark(fmt::format("round {} of {}", round + 1, options.rounds));
  }
  return samples;
}

OrderedJson summary_json(const std::vector<double>& samples) {
  const measure::Summary summary = measure::summarize(samples);
  return {{"median", summary.median},
          {"p10", summary.p10},
          {"p90", summary.p90},
          {"samples", summary.count}};
}

OrderedJson report_json(const engine::Engine& engine, const Samples& samples) {
  const double floor = measure::summarize(samples.read_bytes_s).median;
  const auto weight_bytes = static_cast<double>(engine.executable().memory_use().weight_bytes);
  OrderedJson calls = OrderedJson::array();
  for (const auto& [rows, call_ms] : samples.call_ms) {
    OrderedJson call = {{"rows", rows}, {"call_ms", summary_json(call_ms)}};
    const double median_s = measure::summarize(call_ms).median / 1e3;
    call["tok_s"] = static_cast<double>(rows) / median_s;
    call["weights_gb_s"] = weight_bytes / median_s / 1e9;
    call["of_read_floor"] = weight_bytes / floor / median_s;
    calls.push_back(std::move(call));
  }
  return {{"name", engine.checkpoint().name},
          {"unit", engine.options().unit},
          {"placement", engine.executable().placement_report()},
          {"weights_bytes", static_cast<int64_t>(weight_bytes)},
          {"read_gb_s", floor / 1e9},
          {"floor_ms", weight_bytes / floor * 1e3},
          {"calls", std::move(calls)},
          {"prefill_tok_s", summary_json(samples.prefill_tok_s)},
          {"decode_tok_s", summary_json(samples.decode_tok_s)}};
}

void print_table(const OrderedJson& report) {
  write_stdout(fmt::format(
      "{}: {:.1f} MB of weights; memory reads {:.2f} GB/s, so a call takes {:.2f} ms "
      "at least\n\n",
      printable(report["name"].get<std::string>()), report["weights_bytes"].get<double>() / 1e6,
      report["read_gb_s"].get<double>(), report["floor_ms"].get<double>()));
  write_stdout("  rows   ms (p10 - p90)            tokens/s   GB/s   of floor\n");
  for (const OrderedJson& call : report["calls"]) {
    const OrderedJson& ms = call["call_ms"];
    write_stdout(
        fmt::format("  {:>4}   {:>7.2f} ({:.2f} - {:.2f}){:>18.1f} {:>6.2f}   {:>6.1f} %\n",
                    call["rows"].get<int64_t>(), ms["median"].get<double>(),
                    ms["p10"].get<double>(), ms["p90"].get<double>(), call["tok_s"].get<double>(),
                    call["weights_gb_s"].get<double>(), call["of_read_floor"].get<double>() * 100));
  }
  for (const char* phase : {"prefill", "decode"}) {
    const OrderedJson& rate = report[fmt::format("{}_tok_s", phase)];
    write_stdout(fmt::format("\n  {:<8} {:.1f} tokens/s ({:.1f} - {:.1f})", phase,
                             rate["median"].get<double>(), rate["p10"].get<double>(),
                             rate["p90"].get<double>()));
  }
  write_stdout("\n");
}

}  // namespace

Result<Exit> command_bench(const Options& options) {
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, open_model(options));
  ASSIGN_OR_RETURN(const auto engine, load_engine(std::move(checkpoint), options));
  ASSIGN_OR_RETURN(const Samples samples, measure_all(*engine, options));
  const OrderedJson report = report_json(*engine, samples);
  if (options.json) {
    print_json(report);
  } else {
    print_table(report);
  }
  return Exit::kDone;
}

}  // namespace espalier::cli
