#include <cstdio>
#include <fstream>
#include <string>

#include "espalier/measure/process_memory.h"

namespace espalier::measure {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  const struct {
    const char* format;
    int64_t* bytes;
  } fields[] = {{"VmHWM: %lld kB", &memory.peak_rss_bytes},
                {"RssAnon: %lld kB", &memory.anonymous_bytes},
                {"RssFile: %lld kB", &memory.file_bytes}};
  for (std::string line; std::getline(status, line);) {
    for (const auto& field : fields) {
      long long kilobytes = 0;
      if (std::sscanf(line.c_str(), field.format, &kilobytes) == 1) *field.bytes = kilobytes * 1024;
    }
  }
  return memory;
}

}  // namespace espalier::measure
