// ThreadPool: a fixed set of threads that run one function together, the caller being thread 0.
// Workers are created once, spin briefly between runs and then sleep, so that an idle engine costs
// no CPU. run() and barrier() do not allocate. One run at a time; barrier() only inside run(), by
// every thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "espalier/base/result.h"

namespace espalier {

// More threads than any machine that a pool has been tried on has processors.
inline constexpr int kMaxThreads = 256;

class ThreadPool {
 public:
  // An error where a thread cannot be started; those that were started are joined again.
  static Result<std::unique_ptr<ThreadPool>> create(int thread_count);
  // For callers that cannot do without: throws what std::thread throws, after joining.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int thread_count() const { return thread_count_; }

  // Calls function(thread_index) once on each thread and returns when all have returned. It may not
  // throw: the process ends where it does, as nobody could wait for the other threads any more.
  template <typename Function>
  void run(Function&& function) {
    using Callable = std::remove_reference_t<Function>;
    run_erased([](void* context, int thread) { (*static_cast<Callable*>(context))(thread); },
               const_cast<void*>(static_cast<const void*>(&function)));
  }

  // Every thread of the current run waits for all the others.
  void barrier();

 private:
  using Erased = void (*)(void* context, int thread);
  void run_erased(Erased function, void* context) noexcept;
  void stop();
  void worker(int thread);

  int64_t spins(int64_t wanted) const { return oversubscribed_ ? 0 : wanted; }

  const int thread_count_;
  const bool oversubscribed_;  // more threads than processors: waiting threads sleep at once
  Erased function_ = nullptr;
  void* context_ = nullptr;
  std::atomic<uint32_t> generation_{0};  // 32 bits: waited on without a lock
  std::atomic<int> running_{0};
  std::atomic<int> barrier_arrived_{0};
  std::atomic<uint32_t> barrier_generation_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

// Number of physical cores this process may use, at least 1: affinity, and on Linux the CPU quota
// of its control groups (whole CPUs: a thread beyond the quota makes the others wait). `root` is
// where /proc and /sys are; only tests have another.
int physical_core_count(const std::string& root = "");

}  // namespace espalier
