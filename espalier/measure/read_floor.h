// ReadFloor: how fast this machine's memory can be read right now. A model step reads every weight
// once, so bytes / this rate is the least time it can take. Bandwidth moves from minute to minute:
// measure it between the rounds of what is compared with it. Owns its buffer and threads; one
// caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/threads.h"

namespace espalier::measure {

class ReadFloor {
 public:
  // A buffer far larger than the caches is read, `bytes` of it, by `thread_count` threads. Fails
  // where there is no memory for it, or a thread cannot be started.
  static Result<std::unique_ptr<ReadFloor>> create(int thread_count, int64_t bytes);
  // A pass of each loop of read_loops.h over the buffer: bytes per second of the fastest.
  double measure();

 private:
  ReadFloor(std::unique_ptr<ThreadPool> threads, int64_t bytes);

  std::unique_ptr<ThreadPool> threads_;
  std::vector<uint64_t> buffer_;
};

}  // namespace espalier::measure
