// Plan: where each value of a program lives, decided at compile. Values share memory when their
// lives do not overlap. Immutable; its pointers go into memory that the executable owns.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/program/program.h"
#include "espalier/units/reference/loops.h"

namespace espalier::units::reference {

// How many rows of a value a call fills: as many as the window has, as are selected, or one.
enum class RowKind : uint8_t { kWindow, kSelected, kOne };

struct ValuePlan {
  int64_t offset = 0;  // elements into the fp32 or the i32 arena
  RowKind rows = RowKind::kWindow;
};

struct Plan {
  std::vector<ValuePlan> values;                    // by ValueId
  std::vector<std::vector<const Matrix*>> weights;  // by op
  int64_t float_count = 0;                          // of the fp32 arena
  int64_t integer_count = 0;                        // of the i32 arena
};

// The program must be valid.
Plan make_plan(const program::Program& program, const WeightTable& weights);

}  // namespace espalier::units::reference
