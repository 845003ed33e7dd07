#include "espalier/base/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

namespace espalier {
namespace {

TEST(ThreadPool, CallsEachThreadOnceAndWaitsForAll) {
  for (const int thread_count : {1, 2, 3, 8, 33}) {
    ThreadPool pool(thread_count);
    EXPECT_EQ(pool.thread_count(), thread_count);
    std::vector<int> calls(static_cast<size_t>(thread_count));  // without locks: each has its own
    for (int run = 0; run < 50; ++run) {
      pool.run([&](int thread) { ++calls[static_cast<size_t>(thread)]; });
      EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), thread_count * (run + 1));
    }
    EXPECT_EQ(*std::min_element(calls.begin(), calls.end()), 50);
  }
}

TEST(ThreadPool, TheCallerIsThreadZero) {
  ThreadPool pool(4);
  const auto caller = std::this_thread::get_id();
  pool.run([&](int thread) { EXPECT_EQ(std::this_thread::get_id() == caller, thread == 0); });
}

TEST(ThreadPool, ABarrierSeparatesWhatComesBeforeFromWhatComesAfter) {
  for (const int thread_count : {1, 2, 5, 24}) {
    ThreadPool pool(thread_count);
    std::vector<int> values(static_cast<size_t>(thread_count), 0);
    pool.run([&](int thread) {
      for (int round = 1; round <= 100; ++round) {
        values[static_cast<size_t>(thread)] = round;
        pool.barrier();
        for (const int value : values) EXPECT_EQ(value, round);
        pool.barrier();
      }
    });
  }
}

TEST(ThreadPool, ManyPoolsOfManyThreadsDoNotStandStill) {
  std::vector<std::thread> users;
  std::atomic<int64_t> sum{0};
  for (int user = 0; user < 6; ++user) {
    users.emplace_back([&] {
      for (int life = 0; life < 5; ++life) {
        ThreadPool pool(16);
        for (int run = 0; run < 20; ++run) {
          pool.run([&](int thread) {
            sum += thread;
            pool.barrier();
            sum += 1;
          });
        }
      }
    });
  }
  for (auto& user : users) user.join();
  EXPECT_EQ(sum, 6 * 5 * 20 * (16 * 15 / 2 + 16));
}

TEST(ThreadPool, WakesUpAfterItHasSlept) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int run = 0; run < 5; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than threads spin
    pool.run([&](int) { ++calls; });
  }
  EXPECT_EQ(calls, 15);
}

TEST(ThreadPool, CanBeDestroyedWithoutHavingRun) {
  for (int i = 0; i < 50; ++i) const ThreadPool pool(1 + i % 9);
}

TEST(ThreadPoolDeathTest, NeedsAThread) { EXPECT_DEATH(ThreadPool(0), "thread_count >= 1"); }

TEST(PhysicalCores, AreAtLeastOneAndNoMoreThanProcessors) {
  EXPECT_GE(physical_core_count(), 1);
  EXPECT_LE(physical_core_count(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace espalier
