// Reading memory as fast as this machine lets it be read: the floor of everything that reads weights
// once. Processors differ in what they like, so several loops read the same bytes and the fastest
// counts. The memory and the threads are the caller's; one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/base/clock.h"
#include "espalier/base/threads.h"

namespace espalier::measure {

struct ReadLoop {
  std::string_view name;
  uint64_t (*run)(const std::byte* bytes, int64_t count);  // the sum of the words that were read
};
std::span<const ReadLoop> all_read_loops();

// Bytes per second of one pass over `parts`, each divided among the threads of `pool`, by the loop
// that is fastest now. `clock` is of the calling thread.
double read_bytes_per_s(ThreadPool& pool, std::span<const std::span<const std::byte>> parts,
                        MillisecondClock clock = now_ms);

}  // namespace espalier::measure
