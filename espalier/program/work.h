// Work of a program: arithmetic and bytes of one call, per kind of op and in all. Cost models,
// floors and `espalier info` start from these counts. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "espalier/program/program.h"

namespace espalier::program {

struct Work {
  double flops = 0;              // multiplications plus additions
  int64_t weight_bytes = 0;      // each op's weights read once
  int64_t kv_bytes = 0;          // states read, and rows staged into them
  int64_t activation_bytes = 0;  // inputs and outputs of ops

  Work& operator+=(const Work& other);
  int64_t bytes() const { return weight_bytes + kv_bytes + activation_bytes; }
};

struct WorkOptions {
  int64_t rows = 0;       // rows of the call; 0: the program's window
  int64_t committed = 0;  // positions in the state before the call
  int64_t kv_element_bytes = 2;
  int64_t activation_element_bytes = 4;
  // Bytes of a weight as the unit stores it.
  std::function<int64_t(const Weight&)> weight_bytes;
};

struct ProgramWork {
  std::map<OpKind, Work> by_kind;
  Work total;
};

// What one position takes in all K and V, in elements; convolution rows do not grow with the text.
int64_t kv_elements_per_position(const Program& program);

// The program must be valid.
ProgramWork count_work(const Program& program, const WorkOptions& options);

}  // namespace espalier::program
