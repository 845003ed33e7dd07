// Plan: one function of a program set as a list of steps over an arena. A step divides its work
// into items (rows, panels of 16 channels, queries), of which each thread takes a contiguous share;
// a barrier stands in front of a step only where it touches what another thread may still be
// writing or reading. Nothing of a step's result depends on how many threads there are.
//
// Immutable after make_plan(); points into the WeightStore, which must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/program/program.h"
#include "espalier/units/cpu/call.h"
#include "espalier/units/cpu/weight_store.h"

namespace espalier::units::cpu {

// How a step is divided. Two steps with equal splits give each thread the same items; kEveryThread gives each of
// them all rows, for results that each thread keeps to itself.
struct Split {
  enum class By : uint8_t { kRows, kPanels, kQueries, kSubranges, kEveryThread };
  By by = By::kRows;
  RowSet rows = RowSet::kWindow;  // a step without rows is skipped
  int64_t count = 0;              // panels, heads (of every row) or subranges; unused for rows
  int64_t kv_heads = 0;           // queries only: items are ordered by them
  bool operator==(const Split&) const = default;

  int64_t item_count(const Call& call) const;
};

// Items [first, last) of thread `thread`.
struct Share {
  int64_t first = 0;
  int64_t last = 0;
  int thread = 0;
};

Share share_of(const Split& split, const Call& call, int thread, int thread_count);

// What a step touches, for the placing of barriers. `own_share`: only the thread's own items of it.
struct Access {
  int64_t first = 0;  // range of addresses in a space of the plan's making
  int64_t last = 0;
  int64_t stride = 0;
  bool writes = false;
  bool own_share = false;
};

struct Step {
  Split split;
  std::vector<Access> accesses;  // emptied once the barriers are placed
  std::function<void(const Call&, const Share&)> run;
  bool barrier_before = false;
};

// Marks the steps in front of which all threads must meet.
void place_barriers(std::vector<Step>& steps);

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
  int64_t arena_floats = 0;
  int64_t thread_scratch_floats = 0;
  std::vector<Step> steps;
};

// `states` has the shapes of the program's states, by StateId; `kv_rows` is the longest bucket that
// the plan will be run with; `planes` is CompileOptions::activation_planes.
Result<Plan> make_plan(const program::Program& program, const WeightStore& weights, int64_t kv_rows,
                       int planes, int kv_bits, PlanKind kind, ActivationSlots& slots);

}  // namespace espalier::units::cpu
