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

// Spins, and then sleeps, while `value` is `old`. Spinning alone would take the processor from the
// very thread that is waited for when there are more threads than processors, ours or others'.
template <typename T>
void wait_while(const std::atomic<T>& value, T old, int64_t spins) {
  for (; spins > 0; --spins) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_cpu();
  }
  value.wait(old, std::memory_order_acquire);
}

// A pause takes 15 to 45 ns. Between the steps of a call threads arrive within microseconds of each
// other; between two calls of a decode the caller samples and prints. With the machine four times
// overcommitted, a decode of SmolLM2 took 45 ms a step with 300 spins, 65 with 1,000, 175 with 4,000.
constexpr int64_t kBarrierSpins = 300;
constexpr int64_t kIdleSpins = 50'000;

}  // namespace

ThreadPool::ThreadPool(int thread_count)
    : thread_count_(thread_count),
      oversubscribed_(thread_count > static_cast<int>(std::thread::hardware_concurrency())) {
  CHECK_GE(thread_count, 1);
  for (int thread = 1; thread < thread_count; ++thread) {
    workers_.emplace_back([this, thread] { worker(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Erased function, void* context) {
  function_ = function;
  context_ = context;
  running_.store(thread_count_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  function(context, 0);
  while (const int running = running_.load(std::memory_order_acquire)) {
    wait_while(running_, running, spins(kBarrierSpins));
  }
}

void ThreadPool::worker(int thread) {
  for (uint32_t seen = 0;;) {
    wait_while(generation_, seen, spins(kIdleSpins));
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) return;
    function_(context_, thread);
    if (running_.fetch_sub(1, std::memory_order_release) == 1) running_.notify_all();
  }
}

void ThreadPool::barrier() {
  if (thread_count_ == 1) return;
  const uint32_t generation = barrier_generation_.load(std::memory_order_acquire);
  if (barrier_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == thread_count_) {
    barrier_arrived_.store(0, std::memory_order_relaxed);
    barrier_generation_.fetch_add(1, std::memory_order_release);
    barrier_generation_.notify_all();
    return;
  }
  wait_while(barrier_generation_, generation, spins(kBarrierSpins));
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
