// espalier doctor: what this machine can do, what would be chosen and why, and what is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <thread>

#include "espalier/base/threads.h"
#include "espalier/base/utf8.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/json_output.h"
#include "espalier/cli/loading.h"
#include "espalier/cli/machine.h"
#include "espalier/cli/terminal.h"
#include "espalier/models/model.h"
#include "espalier/units/registry.h"

namespace espalier::cli {
namespace {

Result<OrderedJson> units_json() {
  OrderedJson units = OrderedJson::array();
  for (const std::string& name : units::unit_names()) {
    ASSIGN_OR_RETURN(const auto unit, units::make_unit(name));
    const std::vector<std::string> kernels = unit->kernel_names();
    units.push_back({{"name", name}, {"kernels", kernels}});
    if (kernels.empty()) continue;
    units.back()["chosen"] = kernels.front();
    units.back()["why"] = "the first of the kernel sets, best first, that this CPU can run";
  }
  return units;
}

std::vector<std::string> what_is_missing(const Machine& machine, const Options& options) {
  std::vector<std::string> missing;
  if (!machine.missing_cpu_features.empty()) {
    missing.push_back(fmt::format("CPU features {}: their kernels cannot run here",
                                  fmt::join(machine.missing_cpu_features, ", ")));
  }
  if (machine.huge_pages == "never") {
    missing.emplace_back(
        "huge pages are off: reading weights costs more address translation; as root, "
        "'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled'");
  }
  if (options.model.empty()) missing.emplace_back("no --model was given, so none was tried");
  return missing;
}

// Loads the model of --model and says where its parts run.
OrderedJson model_json(const Options& options) {
  auto model = load_model(options);
  if (!model.ok()) return {{"path", options.model}, {"error", model.error().message()}};
  return {{"path", options.model},
          {"load_ms", model->load_ms},
          {"placement", model->engine->executable().placement_report()},
          {"packed", packed_json(*model->engine)},
          {"memory", memory_json(*model->engine, 0)}};
}

Result<OrderedJson> report_json(const Options& options) {
  const Machine machine = describe_machine();
  ASSIGN_OR_RETURN(OrderedJson units, units_json());
  OrderedJson report = {{"cpu", machine.cpu},
                        {"cpu_features", machine.cpu_features},
                        {"missing_cpu_features", machine.missing_cpu_features},
                        {"physical_cores", physical_core_count()},
                        {"logical_cores", std::thread::hardware_concurrency()},
                        {"memory_bytes", machine.memory_bytes},
                        {"available_bytes", machine.available_bytes},
                        {"huge_pages", machine.huge_pages},
                        {"units", std::move(units)},
                        {"architectures", models::known_architectures()},
                        {"missing", what_is_missing(machine, options)}};
  if (!options.model.empty()) report["model"] = model_json(options);
  return report;
}

void print_report(const OrderedJson& report) {
  const auto words = [](const OrderedJson& list) {
    return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), " "));
  };
  const auto gigabytes = [&](const char* key) { return report[key].get<double>() / 1e9; };
  write_stdout(fmt::format("cpu            {}\n", report["cpu"].get<std::string>()));
  write_stdout(fmt::format("features       {}\n", words(report["cpu_features"])));
  write_stdout(fmt::format("cores          {} physical, {} logical\n",
                           report["physical_cores"].get<int>(),
                           report["logical_cores"].get<int>()));
  write_stdout(fmt::format("memory         {:.1f} GB, {:.1f} GB available\n",
                           gigabytes("memory_bytes"), gigabytes("available_bytes")));
  write_stdout(fmt::format("huge pages     {}\n", report["huge_pages"].get<std::string>()));
  for (const OrderedJson& unit : report["units"]) {
    write_stdout(fmt::format("unit           {}", unit["name"].get<std::string>()));
    if (unit.contains("chosen")) {
      write_stdout(fmt::format(": kernels {} ({}) of {}", unit["chosen"].get<std::string>(),
                               unit["why"].get<std::string>(), words(unit["kernels"])));
    }
    write_stdout("\n");
  }
  write_stdout(fmt::format("architectures  {}\n", words(report["architectures"])));
  for (const OrderedJson& missing : report["missing"]) {
    write_stdout(fmt::format("missing        {}\n", missing.get<std::string>()));
  }
  if (!report.contains("model")) return;
  const OrderedJson& model = report["model"];
  if (model.contains("error")) {
    write_stdout(fmt::format("model          {}\n", printable(model["error"].get<std::string>())));
    return;
  }
  write_stdout(fmt::format("model          {} loads in {:.0f} ms\n",
                           printable(model["path"].get<std::string>()),
                           model["load_ms"].get<double>()));
  write_stdout(fmt::format("               packed weights from {} in {:.0f} ms\n",
                           model["packed"]["from"].get<std::string>(),
                           model["packed"]["ms"].get<double>()));
  for (const OrderedJson& line : model["placement"]) {
    write_stdout(fmt::format("               {}\n", line.get<std::string>()));
  }
}

}  // namespace

Result<Exit> command_doctor(const Options& options) {
  ASSIGN_OR_RETURN(const OrderedJson report, report_json(options));
  if (options.json) {
    print_json(report);
  } else {
    print_report(report);
  }
  const bool failed = report.contains("model") && report["model"].contains("error");
  return failed ? Exit::kFailed : Exit::kDone;
}

}  // namespace espalier::cli
