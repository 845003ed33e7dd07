#include "bench/peak.h"

#include <atomic>

namespace espalier::bench {
namespace {

constexpr double kMeasuredMs = 10;
constexpr int64_t kPassesPerLook = 4096;  // at the clock: 20 to 100 us

}  // namespace

double products_per_s(ThreadPool& pool, const PeakLoop& loop, MillisecondClock clock) {
  std::atomic<int64_t> passes{0};
  const double start_ms = clock();
  pool.run([&](int) {
    const Stopwatch watch;
    int64_t done = 0;
    for (; watch.elapsed_ms() < kMeasuredMs; done += kPassesPerLook) loop.run(kPassesPerLook);
    passes.fetch_add(done, std::memory_order_relaxed);
  });
  const double elapsed_ms = clock() - start_ms;
  return static_cast<double>(passes * loop.pass_products) * 1e3 / elapsed_ms;
}

}  // namespace espalier::bench
