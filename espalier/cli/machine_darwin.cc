// Written after sysctl(3); has not run on a Mac yet.
#include <sys/sysctl.h>

#include "espalier/cli/machine.h"

namespace espalier::cli {
namespace {

int64_t number_of(const char* name) {
  int64_t value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

std::string text_of(const char* name) {
  char value[256] = {};
  size_t size = sizeof value - 1;
  return sysctlbyname(name, value, &size, nullptr, 0) == 0 ? std::string(value) : "";
}

}  // namespace

Machine describe_machine() {
  Machine machine{.cpu = text_of("machdep.cpu.brand_string"),
                  .cpu_features = {},
                  .missing_cpu_features = {},
                  .memory_bytes = number_of("hw.memsize"),
                  .available_bytes = number_of("hw.memsize_usable"),
                  .huge_pages = "unknown"};
  for (const char* feature : {"FEAT_DotProd", "FEAT_I8MM", "FEAT_SME"}) {
    const bool found = number_of((std::string("hw.optional.arm.") + feature).c_str()) != 0;
    (found ? machine.cpu_features : machine.missing_cpu_features).emplace_back(feature);
  }
  return machine;
}

}  // namespace espalier::cli
