// Clock: time that only goes forward, in milliseconds. For durations that are reported; nothing
// that decides a token reads it. Any thread; does not allocate.
#pragma once

#include <chrono>

namespace espalier {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Runs from its construction.
class Stopwatch {
 public:
  double elapsed_ms() const { return now_ms() - start_ms_; }

 private:
  double start_ms_ = now_ms();
};

}  // namespace espalier
