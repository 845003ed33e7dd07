#include "espalier/measure/read_floor.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "espalier/measure/read_loops.h"

namespace espalier::measure {

ReadFloor::ReadFloor(std::unique_ptr<ThreadPool> threads, int64_t bytes)
    : threads_(std::move(threads)),
      buffer_(static_cast<size_t>(std::max<int64_t>(bytes, 1 << 20)) / sizeof(uint64_t), 1) {}

Result<std::unique_ptr<ReadFloor>> ReadFloor::create(int thread_count, int64_t bytes) try {
  ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> threads, ThreadPool::create(thread_count));
  return std::unique_ptr<ReadFloor>(new ReadFloor(std::move(threads), bytes));
} catch (const std::bad_alloc&) {
  return out_of_memory_error("the read floor cannot be measured",
                             fmt::format("{} MiB and {} threads", bytes >> 20, thread_count),
                             "Close other programs, or use fewer --threads.");
}

double ReadFloor::measure() {
  const std::span<const std::byte> all = std::as_bytes(std::span(buffer_));
  return read_bytes_per_s(*threads_, {&all, 1});
}

}  // namespace espalier::measure
