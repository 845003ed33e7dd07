#include "espalier/units/cpu/work_queues.h"

namespace espalier::units::cpu {

ItemRange WorkQueue::take(int64_t portion_items, bool from_front) {
  uint64_t left = left_.load(std::memory_order_relaxed);
  for (;;) {
    const ItemRange items = {static_cast<int64_t>(left & 0xffffffff),
                             static_cast<int64_t>(left >> 32)};
    if (items.count() == 0) return {};
    const int64_t half = items.count() / 2 / portion_items * portion_items;
    // The cut lies at whole portions from the front, whichever end is taken.
    const int64_t front_count = from_front && half == 0 ? items.count() : half;
    const ItemRange front = {items.first, items.first + front_count},
                    back = {front.last, items.last};
    if (left_.compare_exchange_weak(left, packed(from_front ? back : front),
                                    std::memory_order_relaxed)) {
      return from_front ? front : back;
    }
  }
}

WorkQueues::WorkQueues(size_t max_phases, int thread_count)
    : max_phases_(max_phases),
      thread_count_(thread_count),
      queues_(2 * max_phases * static_cast<size_t>(thread_count)) {}

void WorkQueues::fill(const Interval& interval, size_t number, const Call& call, int thread) {
  for (size_t phase = 0; phase < interval.size(); ++phase) {
    if (interval[phase].portion_items(call, thread_count_) == 0) continue;
    const Share share = share_of(interval[phase].split, call, thread, thread_count_);
    queues(number, phase)[static_cast<size_t>(thread)].fill({share.first, share.last});
  }
}

void WorkQueues::run(std::span<const Interval> intervals, const Call& call, ThreadPool& pool) {
  for (int thread = 0; thread < thread_count_; ++thread) fill(intervals[0], 0, call, thread);
  pool.run([&](int thread) {
    for (size_t number = 0; number < intervals.size(); ++number) {
      if (number > 0) {
        fill(intervals[number], number, call, thread);
        pool.barrier();
      }
      run_interval(intervals[number], number, call, thread);
    }
  });
}

void WorkQueues::run_interval(const Interval& interval, size_t number, const Call& call,
                              int thread) {
  for (size_t index = 0; index < interval.size(); ++index) {
    const Phase& phase = interval[index];
    const int64_t portion_items = phase.portion_items(call, thread_count_);
    if (portion_items == 0) {
      phase.run(call, share_of(phase.split, call, thread, thread_count_));
      continue;
    }
    const std::span<WorkQueue> all = queues(number, index);
    for (int i = 0; i < thread_count_; ++i) {
      WorkQueue& queue = all[static_cast<size_t>((thread + i) % thread_count_)];
      const auto take = [&] {
        return i == 0 ? queue.take_first(portion_items) : queue.take_last(portion_items);
      };
      for (ItemRange items = take(); items.count() > 0; items = take())
        phase.run(call, {items.first, items.last, thread});
    }
  }
}

}  // namespace espalier::units::cpu
