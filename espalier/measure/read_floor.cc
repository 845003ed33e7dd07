#include "espalier/measure/read_floor.h"

#include <algorithm>

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

ReadFloor::ReadFloor(int thread_count, int64_t bytes)
    : threads_(thread_count),
      buffer_(static_cast<size_t>(std::max<int64_t>(bytes, 1 << 20)) / sizeof(uint64_t), 1),
      sums_(static_cast<size_t>(thread_count)) {}

double ReadFloor::measure() {
  const size_t threads = sums_.size();
  const Stopwatch watch;
  threads_.run([&](int thread) {
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
