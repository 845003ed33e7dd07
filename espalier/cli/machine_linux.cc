#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "espalier/cli/machine.h"

namespace espalier::cli {
namespace {

// As /proc/cpuinfo spells them; the kernels of units/cpu ask for these.
#if defined(__x86_64__)
constexpr const char* kFeatures[] = {"avx2",     "fma",      "f16c",     "avx512f",
                                     "avx512bw", "avx512vl", "avx512dq", "avx512_vnni",
                                     "avx_vnni", "amx_tile", "amx_int8"};
#else
constexpr const char* kFeatures[] = {"asimd", "asimddp", "i8mm", "sme"};
#endif

// "name : value" of the first matching line.
std::string field_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    return line.substr(std::min(line.find_first_not_of(" \t", colon + 1), line.size()));
  }
  return "";
}

int64_t kilobytes_of(const std::string& name) {
  return std::strtoll(field_of("/proc/meminfo", name).c_str(), nullptr, 10) * 1024;
}

// The word in brackets: "always [madvise] never".
std::string chosen_word(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return "unknown";
  return line.substr(open + 1, close - open - 1);
}

}  // namespace

Machine describe_machine() {
  Machine machine{.cpu = field_of("/proc/cpuinfo", "model name"),
                  .cpu_features = {},
                  .missing_cpu_features = {},
                  .memory_bytes = kilobytes_of("MemTotal"),
                  .available_bytes = kilobytes_of("MemAvailable"),
                  .huge_pages = chosen_word("/sys/kernel/mm/transparent_hugepage/enabled")};
  std::istringstream flags(field_of("/proc/cpuinfo", "flags") + " " +
                           field_of("/proc/cpuinfo", "Features"));
  std::vector<std::string> present;
  for (std::string flag; flags >> flag;) present.push_back(flag);
  for (const char* feature : kFeatures) {
    const bool found = std::ranges::find(present, feature) != present.end();
    (found ? machine.cpu_features : machine.missing_cpu_features).emplace_back(feature);
  }
  return machine;
}

}  // namespace espalier::cli
