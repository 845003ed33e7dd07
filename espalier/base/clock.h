// Clock: time that only goes forward, in milliseconds. For durations that are reported; nothing
// that decides a token reads it. Any thread; does not allocate.
#pragma once

#include <chrono>
#include <ctime>

namespace espalier {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of the calling thread alone: what other processes take is not in it, and neither are other threads.
inline double thread_cpu_ms() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

using MillisecondClock = double (*)();

// Runs from its construction.
class Stopwatch {
 public:
  double elapsed_ms() const { return now_ms() - start_ms_; }

 private:
  double start_ms_ = now_ms();
};

}  // namespace espalier
