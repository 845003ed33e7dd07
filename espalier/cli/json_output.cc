#include "espalier/cli/json_output.h"

#include <algorithm>
#include <utility>

#include "espalier/cli/terminal.h"
#include "espalier/measure/process_memory.h"

namespace espalier::cli {

void print_json(const OrderedJson& json) {
  write_stdout(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

std::string_view name_of(decode::FinishReason reason) {
  switch (reason) {
    case decode::FinishReason::kStop:
      return "stop";
    case decode::FinishReason::kLength:
      return "length";
    case decode::FinishReason::kCancelled:
      return "cancelled";
    case decode::FinishReason::kError:
      return "error";
  }
  return "";
}

OrderedJson timings_json(const engine::Timings& timings, double load_ms) {
  return {{"load_ms", load_ms},         {"prefill_ms", timings.prefill_ms},
          {"ttft_ms", timings.ttft_ms}, {"decode_tok_s", timings.decode_tok_s()},
          {"calls", timings.calls},     {"rows", timings.rows}};
}

// Accepted nodes per cycle as a histogram, as long as its last entry that is not 0.
OrderedJson speculation_json(const decode::SpeculationStatistics& statistics) {
  OrderedJson depths = OrderedJson::array();
  const auto& counts = statistics.accepted_depths;
  const auto end = std::find_if(counts.rbegin(), counts.rend(), [](int64_t n) { return n > 0; });
  for (auto count = counts.begin(); count != end.base(); ++count) depths.push_back(*count);
  return {{"cycles", statistics.cycles},
          {"tokens_per_cycle", statistics.tokens_per_cycle()},
          {"draft_tokens", statistics.draft_nodes},
          {"accepted_tokens", statistics.accepted_nodes},
          {"accepted_depths", std::move(depths)},
          {"verify_ms", statistics.verify_ms},
          {"draft_ms", statistics.draft_ms},
          {"host_ms", statistics.host_ms}};
}

OrderedJson packed_json(const engine::Engine& engine) {
  const units::PackedReport& report = engine.executable().packed_report();
  const auto origin = [&] {
    switch (report.origin) {
      case units::PackedOrigin::kMemory:
        break;
      case units::PackedOrigin::kWritten:
        return "written";
      case units::PackedOrigin::kCache:
        return "cache";
    }
    return "memory";
  }();
  OrderedJson json = {{"from", origin}, {"ms", report.elapsed_ms}};
  if (!report.path.empty()) json["path"] = report.path;
  return json;
}

OrderedJson memory_json(const engine::Engine& engine, int64_t kv_bytes) {
  const measure::ProcessMemory process = measure::process_memory();
  units::MemoryUse use = engine.executable().memory_use();
  if (engine.draft_network() != nullptr) {
    const units::MemoryUse drafter = engine.draft_network()->executable().memory_use();
    use.weight_bytes += drafter.weight_bytes;
    use.scratch_bytes += drafter.scratch_bytes;
  }
  return {{"peak_rss_bytes", process.peak_rss_bytes}, {"anonymous_bytes", process.anonymous_bytes},
          {"file_bytes", process.file_bytes},         {"weights_bytes", use.weight_bytes},
          {"scratch_bytes", use.scratch_bytes},       {"kv_bytes", kv_bytes}};
}

}  // namespace espalier::cli
