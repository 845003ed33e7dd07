// A whole model against the limit of this machine: loading, memory, prefill by length, decode by
// context, calls by rows, each beside the floor of the same rounds. Rows: {model, work, value, unit,
// floor, fraction}; the floor is in the unit of the value, the fraction is 1 where the limit is
// reached. With --floor 0 nothing is measured but the work (one run of `bench peers`).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/command.h"
#include "bench/model_floor.h"
#include "bench/model_work.h"
#include "espalier/base/clock.h"
#include "espalier/measure/process_memory.h"
#include "espalier/measure/statistics.h"
#include "espalier/program/validate.h"

namespace espalier::bench {
namespace {

constexpr std::string_view kDefaultWork =
    "prefill:64,prefill:512,prefill:2048,decode:128,decode:2048,decode:8192,verify:1,verify:2,"
    "verify:3,verify:4,verify:5,verify:6,verify:8,verify:12,verify:16,verify:24,verify:32,"
    "verify:48,verify:64";

struct Options {
  std::string model, kernels, weights = "int8", activations = "16", kv = "16";
  int64_t threads = 0, window = 64, rounds = 5, floor = 1;
  std::vector<Work> works;
};

struct Measured {
  std::unique_ptr<WorkRun> run;
  std::vector<double> ms;
};

class Report {
 public:
  explicit Report(std::string model) : model_(std::move(model)) {}

  // `floor` 0: not measured. A rate is better when larger, all else when smaller.
  void add(const std::string& work, double value, std::string_view unit, double floor,
           bool is_rate) {
    OrderedJson row = {{"model", model_}, {"work", work}, {"value", value}, {"unit", unit}};
    row["floor"] = floor > 0 ? OrderedJson(floor) : OrderedJson();
    const double fraction = is_rate ? value / floor : floor / value;
    row["fraction"] = floor > 0 ? OrderedJson(fraction) : OrderedJson();
    fmt::print("{:14} {:10.2f} {:10}", work, value, unit);
    if (floor > 0) fmt::print("  floor {:10.2f}  {:5.1f} %", floor, fraction * 100);
    fmt::print("\n");
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }
  OrderedJson& last() { return rows_.back(); }
  OrderedJson take_rows() { return std::move(rows_); }

 private:
  std::string model_;
  OrderedJson rows_ = OrderedJson::array();
};

engine::EngineOptions engine_options(const Options& options) {
  return {.window = options.window,
          .compile = {.threads = static_cast<int>(options.threads),
                      .weights = options.weights == "keep" ? units::WeightMode::kKeep
                                                           : units::WeightMode::kInt8,
                      .activation_planes = options.activations == "8" ? 1 : 2,
                      .kv_bits = options.kv == "8" ? 8 : 16,
                      .kernels = options.kernels}};
}

void report_work(const Measured& measured, const ModelFloor* floor, Report& report) {
  const WorkRun& run = *measured.run;
  const measure::Summary ms = measure::summarize(measured.ms);
  const double floor_ms = floor == nullptr ? 0 : run.floor_ms(*floor);
  const double tokens = run.tokens() * 1e3;
  if (run.is_rate()) {
    report.add(name_of(run.work()), tokens / ms.median, "tokens/s",
               floor_ms > 0 ? tokens / floor_ms : 0, true);
  } else {
    report.add(name_of(run.work()), ms.median, "ms", floor_ms, false);
  }
  report.last()["ms_p10"] = ms.p10;
  report.last()["ms_p90"] = ms.p90;
  report.last()["samples"] = ms.count;
}

// T*: rows from which more rows cost more. verify(T) / verify(1) is compared with max(1, T / T*);
// the T* whose largest deviation is smallest.
struct VerifyFit {
  double rows = 0;
  double deviation = 0;
};

VerifyFit fit_verify(const std::map<int64_t, double>& ms_of_rows) {
  const double one = ms_of_rows.at(1);
  VerifyFit best{.rows = 0, .deviation = HUGE_VAL};
  for (double candidate = 1; candidate <= 128; candidate *= 1.005) {
    double deviation = 0;
    for (const auto& [rows, ms] : ms_of_rows) {
      const double expected = std::max(1.0, static_cast<double>(rows) / candidate);
      deviation = std::max(deviation, std::abs(ms / one / expected - 1));
    }
    if (deviation < best.deviation) best = {candidate, deviation};
  }
  return best;
}

void report_verify(const std::vector<Measured>& all, Report& report) {
  std::map<int64_t, double> ms_of_rows;
  for (const Measured& measured : all) {
    const Work& work = measured.run->work();
    if (work.kind == WorkKind::kVerify) {
      ms_of_rows[work.amount] = measure::summarize(measured.ms).median;
    }
  }
  if (ms_of_rows.size() < 3 || !ms_of_rows.contains(1)) return;
  for (const auto& [rows, ms] : ms_of_rows) {
    report.add(fmt::format("verify:{}/1", rows), ms / ms_of_rows[1], "ratio", 0, false);
  }
  const VerifyFit fit = fit_verify(ms_of_rows);
  report.add("verify:T*", fit.rows, "rows", 0, false);
  report.last()["deviation"] = fit.deviation;
}

// Works of the default list that a short context or window has no room for are left out; those that
// were asked for are errors.
Result<std::vector<Measured>> prepare(const engine::Engine& engine, const Options& options,
                                      bool skip_what_does_not_fit) {
  std::vector<Measured> all;
  for (const Work& work : options.works) {
    auto run = WorkRun::create(engine, work, options.rounds);
    if (run.ok()) {
      all.push_back({std::move(run).value(), {}});
    } else if (!skip_what_does_not_fit) {
      return run.error();
    } else {
      fmt::print(stderr, "left out: {}\n", run.error().message());
    }
  }
  return all;
}

Status measure_rounds(std::vector<Measured>& all, const Options& options, ModelFloor* floor) {
  for (Measured& measured : all) {  // touches what is new; a text that grows is left as it is
    if (measured.run->work().kind != WorkKind::kDecode) {
      RETURN_IF_ERROR(measured.run->sample_ms());
    }
  }
  for (int64_t round = 0; round < options.rounds; ++round) {
    for (Measured& measured : all) {
      if (floor != nullptr) floor->measure();
      ASSIGN_OR_RETURN(const double ms, measured.run->sample_ms());
      measured.ms.push_back(ms);
    }
  }
  return Ok{};
}

// With the state of one short text, before the states and floors of the other works are there.
Result<double> anonymous_bytes(const engine::Engine& engine) {
  ASSIGN_OR_RETURN(auto run, WorkRun::create(engine, {WorkKind::kCall, 1}, 1));
  RETURN_IF_ERROR(run->sample_ms());
  return static_cast<double>(measure::process_memory().anonymous_bytes);
}

Result<OrderedJson> measure_model(const Options& options, bool default_works) {
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const auto engine, engine::Engine::load(options.model, engine_options(options)));
  const double load_ms = watch.elapsed_ms();
  ASSIGN_OR_RETURN(const double anonymous, anonymous_bytes(*engine));
  ASSIGN_OR_RETURN(std::vector<Measured> all, prepare(*engine, options, default_works));
  std::unique_ptr<ModelFloor> floor;
  if (options.floor != 0) {
    ASSIGN_OR_RETURN(floor, ModelFloor::create(*engine));
  }
  RETURN_IF_ERROR(measure_rounds(all, options, floor.get()));

  Report report(engine->checkpoint().name);
  const auto weights = static_cast<double>(engine->executable().memory_use().weight_bytes);
  if (floor != nullptr) {
    report.add("load", load_ms, "ms", weights / floor->read_bytes_s() * 1e3, false);
    report.add("memory", anonymous * 1e-6, "MB", weights * 1e-6, false);
  }
  for (const Measured& measured : all) report_work(measured, floor.get(), report);
  report_verify(all, report);
  return report.take_rows();
}

Status set_works(std::vector<Work>& works, const std::string& list) {
  works.clear();
  for (const std::string& part : split_list(list)) {
    ASSIGN_OR_RETURN(const Work work, parse_work(part));
    works.push_back(work);
  }
  return Ok{};
}

int run(std::span<char* const> words) {
  Options options;
  bool default_works = true;
  CHECK(set_works(options.works, std::string(kDefaultWork)).ok());
  const std::string works = "of KIND:N; all of docs/performance.md by default\n" + work_help();
  return run_command(
      words, "model: a whole model against the limit of this machine",
      {{"--model", "PATH", "GGUF file, safetensors file or directory", text(options.model)},
       {"--work", "LIST", works,
        [&](const std::string& value) -> Status {
          default_works = false;
          return set_works(options.works, value);
        }},
       {"--kernels", "NAME", "force a kernel set", text(options.kernels)},
       {"--weights", "MODE", "plain float checkpoints: int8 or keep (int8)",
        one_of(options.weights, {"int8", "keep"})},
       {"--activations", "BITS", "16 or 8 (16)", one_of(options.activations, {"16", "8"})},
       {"--kv", "BITS", "16 or 8 (16)", one_of(options.kv, {"16", "8"})},
       {"--window", "ROWS", "of one call (64)",
        integer(options.window, 1, program::kMaxWindowRows)},
       {"--threads", "N", "by default the physical cores",
        integer(options.threads, 1, kMaxThreads)},
       {"--rounds", "N", "measure everything N times, in turns (5)",
        integer(options.rounds, 1, 1000)},
       {"--floor", "0|1", "0: no floors, only the work (1)", integer(options.floor, 0, 1)}},
      [&] { return measure_model(options, default_works); });
}

}  // namespace
}  // namespace espalier::bench

int main(int count, char** arguments) {
  return espalier::bench::run({arguments, static_cast<size_t>(count)});
}
