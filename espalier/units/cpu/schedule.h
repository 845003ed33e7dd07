// The schedule of a plan: a step divides its work into items (rows, panels of 16 channels, queries), of which each thread
// has a contiguous share; a barrier stands in front of a step only where it touches what another thread may still be
// writing or reading. Nothing of a step's result depends on how many threads there are, or on which of them did what.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/units/cpu/call.h"

namespace espalier::units::cpu {

// How a step is divided. kEveryThread gives each thread all rows, for results that it keeps to itself.
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

// A thread that has done its share takes portions of what others have left: cores are not equally fast, and not always ours
// alone. A portion is `least_items` or more, as many as have `kPortionBytes` of weights.
struct Step {
  Split split;
  std::vector<Access> accesses;
  std::function<void(const Call&, const Share&)> run;
  int64_t least_items = 0;  // 0: each thread does its own share
  int64_t item_bytes = 0;   // of weights
};

// Steps in a row with equal splits: whoever takes an item does all of them for it.
struct Phase {
  Split split;
  std::vector<std::function<void(const Call&, const Share&)>> runs;
  int64_t least_items = 0;
  int64_t item_bytes = 0;

  // Items of the smallest portion that is taken from another thread; 0: shares are fixed.
  int64_t portion_items(const Call& call, int thread_count) const;
  void run(const Call& call, const Share& share) const {
    if (share.first >= share.last) return;
    for (const auto& step : runs) step(call, share);
  }
};

// Phases that threads go through without waiting for each other; all threads meet between two intervals.
using Interval = std::vector<Phase>;

std::vector<Interval> make_intervals(std::vector<Step> steps);

}  // namespace espalier::units::cpu
