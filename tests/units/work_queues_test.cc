// Work queues: every item is done once, whoever is late.
#include "espalier/units/cpu/work_queues.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "espalier/base/check.h"
#include "espalier/base/threads.h"

namespace espalier::units::cpu {
namespace {

TEST(WorkQueue, GivesWholePortionsFromBothEndsAndEachItemOnce) {
  std::mt19937_64 random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto first = static_cast<int64_t>(random() % 100),
               count = static_cast<int64_t>(random() % 300),
               portion = static_cast<int64_t>(1 + random() % 12);
    WorkQueue queue;
    queue.fill({first, first + count});
    int64_t front = first, back = first + count;
    while (front < back) {
      const bool from_front = random() % 2 == 0;
      const ItemRange items = from_front ? queue.take_first(portion) : queue.take_last(portion);
      ASSERT_GT(items.count(), 0);
      ASSERT_EQ(from_front ? items.first : items.last, from_front ? front : back);
      (from_front ? front : back) = from_front ? items.last : items.first;
      ASSERT_LE(front, back);
      if (front == back) continue;
      const int64_t cut = from_front ? front : back;
      ASSERT_GE(items.count(), portion);
      ASSERT_EQ((cut - first) % portion, 0);  // tiles of items are not cut in two
      ASSERT_GE(back - front, portion);
    }
    EXPECT_EQ(queue.take_first(portion).count(), 0);
    EXPECT_EQ(queue.take_last(portion).count(), 0);
  }
}

constexpr int kThreads = 3;
constexpr int64_t kItems = 200;

// A call that knows the number of its rows and nothing else.
class RowsOnly {
 public:
  explicit RowsOnly(int64_t rows) : paths_(1) {
    inputs_.row_count = rows;
    StateLayout layout;
    layout.buckets = {1};
    auto state = CpuState::create(std::make_shared<StateLayout>(layout), 1);
    CHECK(state.ok());
    state_ = std::move(state).value();
  }
  Call call() {
    return {.kernels = kPortableKernels,
            .arena = nullptr,
            .activations = {},
            .thread_activations = {},
            .thread_count = kThreads,
            .few_rows = false,
            .thread_scratch = {},
            .thread_scratch_floats = 0,
            .paths = paths_,
            .inputs = inputs_,
            .outputs = outputs_,
            .state = *state_};
  }

 private:
  WindowPaths paths_;
  CallInputs inputs_;
  CallOutputs outputs_;
  std::unique_ptr<CpuState> state_;
};

// Steps that count what is done, and notice an item whose earlier step of the same phase was not.
class CountedSteps {
 public:
  std::function<void(const Call&, const Share&)> next(bool follows) {
    const size_t step = done_.size();
    done_.emplace_back(kItems);
    return [this, step, follows](const Call&, const Share& share) {
      for (auto item = static_cast<size_t>(share.first); item < static_cast<size_t>(share.last);
           ++item) {
        if (done_[step][item].fetch_add(1) != 0) ++mistakes_;
        if (follows && done_[step - 1][item].load() != 1) ++mistakes_;
      }
      const bool late = (share.first + static_cast<int64_t>(step)) % 7 == share.thread;
      if (late) std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
  }
  bool all_done_once() const {
    return mistakes_ == 0 && std::ranges::all_of(done_, [](const auto& items) {
             return std::ranges::all_of(items, [](const auto& times) { return times == 1; });
           });
  }

 private:
  std::deque<std::vector<std::atomic<int>>> done_;
  std::atomic<int> mistakes_ = 0;
};

Interval random_interval(std::mt19937_64& random, CountedSteps& steps) {
  Interval interval(1 + random() % 3);
  for (Phase& phase : interval) {
    phase.split = {.by = Split::By::kPanels, .rows = RowSet::kWindow, .count = kItems};
    phase.least_items = static_cast<int64_t>(random() % 4);
    phase.item_bytes = static_cast<int64_t>(random() % 9000);
    for (uint64_t runs = 1 + random() % 3; runs > 0; --runs)
      phase.runs.push_back(steps.next(!phase.runs.empty()));
  }
  return interval;
}

TEST(WorkQueues, DoEveryStepOfEveryItemOnceInOrderUnderAnyDelays) {
  std::mt19937_64 random(5);
  ThreadPool pool(kThreads);
  WorkQueues queues(3, kThreads);
  for (int trial = 0; trial < 40; ++trial) {
    CountedSteps steps;
    std::vector<Interval> intervals;
    for (int i = 0; i < 10; ++i) intervals.push_back(random_interval(random, steps));
    RowsOnly rows(1 + trial % 5);
    const Call call = rows.call();
    queues.run(intervals, call, pool);
    EXPECT_TRUE(steps.all_done_once()) << "trial " << trial;
  }
}

}  // namespace
}  // namespace espalier::units::cpu
