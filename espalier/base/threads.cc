#include "espalier/base/threads.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "espalier/base/check.h"

#ifdef __linux__
#include <sched.h>
#endif

namespace espalier {
namespace {

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins while `waiting()` holds, giving the processor away every so often, so that more threads
// than cores slow each other down but never stand still. Returns false when `spin_limit` was
// reached (0: no limit).
template <typename Waiting>
bool spin_while(Waiting waiting, int64_t spin_limit) {
  for (int64_t spins = 0; waiting(); ++spins) {
    if (spin_limit > 0 && spins >= spin_limit) return false;
    if (spins % 2048 == 2047) std::this_thread::yield();
    pause_cpu();
  }
  return true;
}

// About a millisecond: longer than the gap between two steps of a decode, shorter than anyone
// notices.
constexpr int64_t kIdleSpins = 50'000;

}  // namespace

ThreadPool::ThreadPool(int thread_count) : thread_count_(thread_count) {
  CHECK_GE(thread_count, 1);
  for (int thread = 1; thread < thread_count; ++thread) {
    workers_.emplace_back([this, thread] { worker(thread); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Erased function, void* context) {
  function_ = function;
  context_ = context;
  running_.store(thread_count_ - 1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);  // pairs with the sleeping worker's check of generation_
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  function(context, 0);
  spin_while([&] { return running_.load(std::memory_order_acquire) != 0; }, 0);
}

void ThreadPool::worker(int thread) {
  uint64_t seen = 0;
  for (;;) {
    const auto idle = [&] { return generation_.load(std::memory_order_acquire) == seen; };
    if (!spin_while(idle, kIdleSpins)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !idle(); });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    function_(context_, thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::barrier() {
  if (thread_count_ == 1) return;
  const uint64_t generation = barrier_generation_.load(std::memory_order_acquire);
  if (barrier_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == thread_count_) {
    barrier_arrived_.store(0, std::memory_order_relaxed);
    barrier_generation_.fetch_add(1, std::memory_order_release);
    return;
  }
  spin_while([&] { return barrier_generation_.load(std::memory_order_acquire) == generation; }, 0);
}

#ifdef __linux__
int physical_core_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  std::set<std::pair<int, int>> cores;  // (package, core)
  int logical = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++logical;
    const auto read = [cpu](const char* name) {
      const std::string path =
          "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name;
      int value = -1;
      if (FILE* file = std::fopen(path.c_str(), "r")) {
        if (std::fscanf(file, "%d", &value) != 1) value = -1;
        std::fclose(file);
      }
      return value;
    };
    const int core = read("core_id");
    if (core >= 0) cores.emplace(read("physical_package_id"), core);
  }
  return std::max(1, cores.empty() ? logical : static_cast<int>(cores.size()));
}
#else
int physical_core_count() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}
#endif

}  // namespace espalier
