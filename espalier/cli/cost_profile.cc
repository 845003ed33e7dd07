#include "espalier/cli/cost_profile.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "espalier/base/atomic_file.h"
#include "espalier/base/checksum.h"
#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/base/threads.h"
#include "espalier/cli/machine.h"

namespace espalier::cli {
namespace {

constexpr double kMostMs = 1e7;  // of a call that is believed

// Whatever moves the cost of a call.
std::string identity_of(const LoadedModel& model, const Options& options) {
  std::error_code problem;
  const auto path = std::filesystem::weakly_canonical(model.engine->checkpoint().path, problem);
  const int64_t threads = options.threads > 0 ? options.threads : physical_core_count();
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", path.string(),
                     describe_machine().cpu, model.engine->options().unit, options.kernels,
                     options.weights, options.activations, options.kv_bits, options.window, threads,
                     options.drafter);
}

}  // namespace

CostProfile::CostProfile(const LoadedModel& model, const Options& options) {
  const std::string folder = packed_cache_folder(options);
  if (folder.empty()) return;
  const std::string identity = identity_of(model, options);
  path_ =
      fmt::format("{}/profiles/{:016x}.json", folder, checksum(std::as_bytes(std::span(identity))));
}

void CostProfile::load(engine::Session& session) const {
  if (path_.empty()) return;
  const auto content = read_text_file(path_);
  if (!content.ok()) return;
  const auto profile = parse_json(*content, path_);
  const Json* list = profile.ok() ? json_find(*profile, "call_ms") : nullptr;
  if (list == nullptr || !list->is_array()) return;
  std::vector<double> call_ms;
  for (const Json& value : *list) {
    const double ms = value.is_number() ? value.get<double>() : -1;
    if (!(ms >= 0 && ms <= kMostMs)) return;
    call_ms.push_back(ms);
  }
  session.adopt_call_costs(call_ms);
}

void CostProfile::save(const engine::Session& session) const {
  if (path_.empty()) return;
  std::error_code problem;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), problem);
  const std::string text = Json{{"call_ms", session.call_costs_ms()}}.dump() + "\n";
  auto file = AtomicFile::create(path_);
  if (!file.ok() || !file->write(std::as_bytes(std::span(text))).ok()) return;
  (void)file->finish(Durability::kWhenWritten);
}

}  // namespace espalier::cli
