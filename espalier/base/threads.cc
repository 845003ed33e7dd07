#include "espalier/base/threads.h"

#include <exception>

#include "espalier/base/check.h"

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
// other, and waking one that sleeps takes tens of them, or a time slice where other processes want
// the processor; between two calls of a decode the caller samples and prints. Milliseconds a step in
// a decode of SmolLM2, two threads:
//   spins                             300  1,000  4,000  20,000
//   Sapphire Rapids, idle              16      7      6       6
//   the same, one busy loop beside  > 500    170     53      14
//   Zen 4, four compilers a core       45     65    175       -
constexpr int64_t kBarrierSpins = 4'000;
constexpr int64_t kIdleSpins = 50'000;

}  // namespace

ThreadPool::ThreadPool(int thread_count)
    : thread_count_(thread_count),
      oversubscribed_(thread_count > static_cast<int>(std::thread::hardware_concurrency())) {
  CHECK_GE(thread_count, 1);
  try {
    workers_.reserve(static_cast<size_t>(thread_count - 1));
    for (int thread = 1; thread < thread_count; ++thread) {
      workers_.emplace_back([this, thread] { worker(thread); });
    }
  } catch (...) {  // a thread that is still joinable would end the process
    stop();
    throw;
  }
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int thread_count) try {
  return std::make_unique<ThreadPool>(thread_count);
} catch (const std::exception& exception) {  // system_error, bad_alloc
  return Error{.what = "a thread could not be started",
               .expected = fmt::format("{} threads", thread_count),
               .actual = exception.what(),
               .fix = "Use fewer threads, or raise the limits on processes and memory."};
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Erased function, void* context) noexcept {
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

}  // namespace espalier
