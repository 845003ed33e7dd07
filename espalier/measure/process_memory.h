// What memory this process holds, from the operating system. Anonymous memory is its own (heap, KV,
// packed weights); file-backed memory is the page cache seen through mappings and can be dropped at
// any time.
#pragma once

#include <cstdint>

namespace espalier::measure {

struct ProcessMemory {
  int64_t peak_rss_bytes = 0;   // highest resident size so far, both kinds
  int64_t anonymous_bytes = 0;  // resident now
  int64_t file_bytes = 0;       // resident now
};

// Zeros where the system does not say.
ProcessMemory process_memory();

}  // namespace espalier::measure
