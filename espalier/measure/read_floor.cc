#include "espalier/measure/read_floor.h"

#include <algorithm>
#include <new>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/base/clock.h"

namespace espalier::measure {
namespace {

// Independent sums, so that loads and not the additions set the pace.
uint64_t sum_of(const uint64_t* words, size_t count) {
  constexpr size_t kLanes = 32;
  uint64_t lanes[kLanes] = {};
  for (size_t i = 0; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += words[i + lane];
  }
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  return sum;
}

}  // namespace

ReadFloor::ReadFloor(std::unique_ptr<ThreadPool> threads, int64_t bytes)
    : threads_(std::move(threads)),
      buffer_(static_cast<size_t>(std::max<int64_t>(bytes, 1 << 20)) / sizeof(uint64_t), 1),
      sums_(static_cast<size_t>(threads_->thread_count())) {}

Result<std::unique_ptr<ReadFloor>> ReadFloor::create(int thread_count, int64_t bytes) try {
  ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> threads, ThreadPool::create(thread_count));
  return std::unique_ptr<ReadFloor>(new ReadFloor(std::move(threads), bytes));
} catch (const std::bad_alloc&) {
  return out_of_memory_error("the read floor cannot be measured",
                             fmt::format("{} MiB and {} threads", bytes >> 20, thread_count),
                             "Close other programs, or use fewer --threads.");
}

double ReadFloor::measure() {
  const size_t threads = sums_.size();
  const Stopwatch watch;
  threads_->run([&](int thread) {
    const auto index = static_cast<size_t>(thread);
    const size_t first = buffer_.size() * index / threads;
    const size_t last = buffer_.size() * (index + 1) / threads;
    sums_[index] = sum_of(buffer_.data() + first, last - first);
  });
  const double elapsed_ms = watch.elapsed_ms();
  uint64_t sum = 0;
  for (const uint64_t part : sums_) sum += part;
  CHECK_LE(sum, buffer_.size());  // every word is 1; a lane's remainder is not read
  return static_cast<double>(buffer_.size() * sizeof(uint64_t)) / (elapsed_ms / 1e3);
}

}  // namespace espalier::measure
