// Plan: one function of a program set as a schedule of steps over an arena.
//
// Immutable after make_plan(); points into the WeightStore, which must outlive it.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/program/program.h"
#include "espalier/units/cpu/schedule.h"
#include "espalier/units/cpu/weight_store.h"

namespace espalier::units::cpu {

// Buffers for values with a life from one op to a later one; freed space is reused.
class ArenaPlanner {
 public:
  // `floats` floats, wanted from op `first_op` to op `last_op`; ops must come in order. Returns the
  // offset.
  int64_t allocate(int64_t floats, int64_t first_op, int64_t last_op);
  int64_t size() const { return size_; }  // floats

 private:
  struct Block {
    int64_t offset, floats, last_op;
  };
  std::vector<Block> live_;  // by offset
  int64_t size_ = 0;
};

// Quantised operands that all plans of an Executable share: one slot for every width and number of
// planes.
class ActivationSlots {
 public:
  enum class Use : uint8_t { kLinear, kAttention };  // which never disturb each other
  struct Kind {
    int64_t columns;
    int planes;
    Use use;
    bool operator<(const Kind& b) const {
      return std::tie(columns, planes, use) < std::tie(b.columns, b.planes, b.use);
    }
  };
  size_t slot(const Kind& kind) { return slots_.try_emplace(kind, slots_.size()).first->second; }
  const std::map<Kind, size_t>& all() const { return slots_; }

 private:
  std::map<Kind, size_t> slots_;
};

// A function is lowered twice. For many rows, the operands of products are normed and quantised by rows, shared, and
// waited for; for few rows every thread does that for itself, because waiting would take longer.
enum class PlanKind : uint8_t { kManyRows, kFewRows };
inline constexpr int64_t kFewRows = 4;
inline constexpr int64_t kThreadOperandRows =
    12;  // of a thread's own operands: few rows, a tile of queries

struct Plan {
  int64_t rows = 0;
  int64_t selected = 0;
  program::Head head = program::Head::kArgmax;
  int64_t vocab = 0;      // outputs of the head; 0 without one
  int64_t subranges = 0;  // argmax head only
  int64_t hidden = 0;     // channels of the embeddings
  int64_t tapped = 0;     // channels of all taps
  int64_t arena_floats = 0;
  int64_t thread_scratch_floats = 0;
  std::vector<Interval> intervals;
};

// `states` has the shapes of the program's states, by StateId; `kv_rows` is the longest bucket that
// the plan will be run with; `planes` is CompileOptions::activation_planes.
Result<Plan> make_plan(const program::Program& program, const WeightStore& weights, int64_t kv_rows,
                       int planes, int kv_bits, PlanKind kind, ActivationSlots& slots);

}  // namespace espalier::units::cpu
