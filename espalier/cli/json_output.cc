#include "espalier/cli/json_output.h"

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
  const units::MemoryUse use = engine.executable().memory_use();
  return {{"peak_rss_bytes", process.peak_rss_bytes}, {"anonymous_bytes", process.anonymous_bytes},
          {"file_bytes", process.file_bytes},         {"weights_bytes", use.weight_bytes},
          {"scratch_bytes", use.scratch_bytes},       {"kv_bytes", kv_bytes}};
}

}  // namespace espalier::cli
