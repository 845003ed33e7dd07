#include "espalier/base/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <numeric>
#include <thread>

#include "tests/support/temporary_directory.h"

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

TEST(ThreadPool, CreatesWhatCanBeStarted) {
  auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ((*pool)->thread_count(), 3);
}

TEST(ThreadPoolDeathTest, NeedsAThread) { EXPECT_DEATH(ThreadPool(0), "thread_count >= 1"); }

TEST(PhysicalCores, AreAtLeastOneAndNoMoreThanProcessors) {
  EXPECT_GE(physical_core_count(), 1);
  EXPECT_LE(physical_core_count(), static_cast<int>(std::thread::hardware_concurrency()));
}

#ifdef __linux__
// A machine with only these files.
int cores_with(const std::map<std::string, std::string>& files) {
  const TemporaryDirectory root;
  for (const auto& [name, content] : files) {
    std::filesystem::create_directories(std::filesystem::path(root / name).parent_path());
    root.write(name, content);
  }
  return physical_core_count(root.path());
}

TEST(PhysicalCores, StayWithinTheQuotaOfTheControlGroups) {
  const int all = cores_with({});  // affinity alone
  ASSERT_GE(all, 1);
  const std::string self = "proc/self/cgroup", v2 = "sys/fs/cgroup/", v1 = "sys/fs/cgroup/cpu/";
  const std::string one = "150000 100000\n", none = "max 100000\n";
  EXPECT_EQ(cores_with({{self, "0::/\n"}, {v2 + "cpu.max", none}}), all);
  EXPECT_EQ(cores_with({{self, "0::/\n"}, {v2 + "cpu.max", one}}), 1);
  EXPECT_EQ(cores_with({{self, "0::/\n"}, {v2 + "cpu.max", "10000 100000"}}), 1);  // never none
  EXPECT_EQ(cores_with({{self, "0::/\n"}, {v2 + "cpu.max", "900000000 100000"}}), all);
  // The group's own, that of a group above it, and a group of the host that is not to be seen.
  EXPECT_EQ(cores_with({{self, "0::/a/b\n"}, {v2 + "a/b/cpu.max", one}}), 1);
  EXPECT_EQ(cores_with({{self, "0::/a/b\n"}, {v2 + "a/cpu.max", one}}), 1);
  EXPECT_EQ(cores_with({{self, "0::/a/b\n"}, {v2 + "cpu.max", one}}), 1);
  EXPECT_EQ(cores_with({{self, "0::/a/b\n"}, {v2 + "c/cpu.max", one}}), all);

  const std::string quota = "cpu.cfs_quota_us", period = "cpu.cfs_period_us";
  EXPECT_EQ(cores_with({{self, "4:cpu,cpuacct:/a\n0::/\n"},
                        {v1 + "a/" + quota, "100000"},
                        {v1 + "a/" + period, "100000"}}),
            1);
  EXPECT_EQ(cores_with({{self, "4:cpu,cpuacct:/a\n"},
                        {"sys/fs/cgroup/cpu,cpuacct/" + quota, "100000"},
                        {"sys/fs/cgroup/cpu,cpuacct/" + period, "100000"}}),
            1);
  EXPECT_EQ(
      cores_with({{self, "4:cpu:/a\n"}, {v1 + "a/" + quota, "-1"}, {v1 + "a/" + period, "100000"}}),
      all);
  EXPECT_EQ(
      cores_with(
          {{self, "4:cpuset:/a\n"}, {v1 + "a/" + quota, "100000"}, {v1 + "a/" + period, "100000"}}),
      all);
  for (const char* junk : {"", "\n", ":", "0:", "0::", "::::", "no colon"}) {
    EXPECT_EQ(cores_with({{self, junk}, {v2 + "cpu.max", "x y"}}), all) << junk;
  }
}

TEST(PhysicalCores, CountSharedCoresOnce) {
  std::map<std::string, std::string> files;
  for (int cpu = 0; cpu < 1024; ++cpu) {  // all of them threads of one core
    const std::string topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    files[topology + "core_id"] = "0\n";
    files[topology + "physical_package_id"] = "0\n";
  }
  EXPECT_EQ(cores_with(files), 1);
}
#endif

}  // namespace
}  // namespace espalier
