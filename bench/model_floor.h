// ModelFloor: the least time that calls of a loaded model can take on this machine now: reading its
// weights and KV once a call, at the rate at which a buffer of the weights' size can be read; or its
// products, at the peak of the kernel set's instruction. Measured between the rounds of what is
// compared with it; medians. Owns a buffer as large as the weights and its own threads. One caller
// at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/peak.h"
#include "espalier/engine/engine.h"
#include "espalier/measure/read_floor.h"
#include "espalier/program/program.h"
#include "espalier/program/work.h"

namespace espalier::bench {

// A call: its rows, the positions committed before it, and how many of the rows have their head
// computed.
struct CallShape {
  int64_t rows = 1;
  int64_t committed = 0;
  int64_t head_rows = 0;
};

class ModelFloor {
 public:
  static Result<std::unique_ptr<ModelFloor>> create(const engine::Engine& engine);
  void measure();
  double call_ms(const CallShape& call) const;
  double read_bytes_s() const;  // median so far
  double products_s() const;    // median so far; 0: the set has no peak loop

 private:
  ModelFloor(const engine::Engine& engine, std::unique_ptr<measure::ReadFloor> read,
             std::unique_ptr<ThreadPool> pool);

  const engine::Engine& engine_;
  const program::Program program_;
  const PeakLoop* peak_;
  std::unique_ptr<measure::ReadFloor> read_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<double> read_samples_, products_samples_;
};

}  // namespace espalier::bench
