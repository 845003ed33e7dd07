// Work queues: what is left of each thread's share of the phases of an interval. Its owner takes from the front, half of
// what is left each time, so that it reads few long stretches; a thread without work takes from the back of others' queues.
//
// A thread fills its own queues of the next interval before the barrier in front of it; two sets of queues alternate,
// so that a thread that is late finds those of its interval as they were.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/threads.h"
#include "espalier/units/cpu/schedule.h"

namespace espalier::units::cpu {

// Items [first, last), fewer than 2^31 of them.
struct ItemRange {
  int64_t first = 0;
  int64_t last = 0;
  int64_t count() const { return last - first; }
};

class alignas(64) WorkQueue {  // a cache line each
 public:
  void fill(const ItemRange& items) { left_.store(packed(items), std::memory_order_relaxed); }
  // Half of what is left in whole portions, or all of it where that is less than two; nothing: an empty range.
  ItemRange take_first(int64_t portion_items) { return take(portion_items, true); }
  ItemRange take_last(int64_t portion_items) { return take(portion_items, false); }

 private:
  static uint64_t packed(const ItemRange& items) {
    return static_cast<uint64_t>(items.last) << 32 | static_cast<uint64_t>(items.first);
  }
  ItemRange take(int64_t portion_items, bool from_front);

  // Relaxed: what the items are and what is made of them is published by barriers.
  std::atomic<uint64_t> left_{0};
};

class WorkQueues {
 public:
  WorkQueues() = default;
  // For plans whose intervals have at most `max_phases` phases.
  WorkQueues(size_t max_phases, int thread_count);

  int64_t byte_count() const { return static_cast<int64_t>(queues_.size() * sizeof(WorkQueue)); }

  // All of a call, on the threads of `pool`. No allocation.
  void run(std::span<const Interval> intervals, const Call& call, ThreadPool& pool);

 private:
  // Puts `thread`'s share of each phase of interval `number` into its queues.
  void fill(const Interval& interval, size_t number, const Call& call, int thread);
  // `thread`'s part of it; all its queues must be filled.
  void run_interval(const Interval& interval, size_t number, const Call& call, int thread);
  // Of one phase, by thread.
  std::span<WorkQueue> queues(size_t interval, size_t phase) {
    const auto threads = static_cast<size_t>(thread_count_);
    return std::span(queues_).subspan((interval % 2 * max_phases_ + phase) * threads, threads);
  }

  size_t max_phases_ = 0;
  int thread_count_ = 1;
  std::vector<WorkQueue> queues_;  // [2, phases, threads]
};

}  // namespace espalier::units::cpu
