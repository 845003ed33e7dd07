// What doctor reports about the machine; one file per operating system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::cli {

struct Machine {
  std::string cpu;                        // model name; "" where unknown
  std::vector<std::string> cpu_features;  // those that kernels ask for, of this CPU
  std::vector<std::string> missing_cpu_features;
  int64_t memory_bytes = 0;
  int64_t available_bytes = 0;
  std::string huge_pages;  // "always", "madvise", "never", or "unknown"
};

Machine describe_machine();

}  // namespace espalier::cli
