#include "espalier/units/cpu/schedule.h"

#include <algorithm>
#include <utility>

namespace espalier::units::cpu {

int64_t Split::item_count(const Call& call) const {
  const int64_t row_count = call.row_count(rows);
  switch (by) {
    case By::kRows:
    case By::kEveryThread:
      return row_count;
    case By::kQueries:
      return row_count * count;
    case By::kPanels:
    case By::kSubranges:
      return row_count == 0 ? 0 : count;
  }
  return 0;
}

// Rounded up, so that the caller's thread, which is certainly awake, gets the single row of a decode.
Share share_of(const Split& split, const Call& call, int thread, int thread_count) {
  const int64_t items = split.item_count(call);
  if (split.by == Split::By::kEveryThread) return {.first = 0, .last = items, .thread = thread};
  return {.first = (items * thread + thread_count - 1) / thread_count,
          .last = (items * (thread + 1) + thread_count - 1) / thread_count,
          .thread = thread};
}

namespace {

// Smaller portions read no long stretches: with 64 KB, calls of 8 rows of SmolLM2 took 10 % longer on an idle machine.
constexpr int64_t kPortionBytes = 1 << 20;
constexpr int64_t kPortionRows = 4;

// Steps of one phase give each thread the same items. Those of two phases do where shares are fixed.
struct PastAccess {
  Access access;
  Split split;
  size_t phase;
};

bool fixed(const Split& split) {
  return split.by == Split::By::kRows || split.by == Split::By::kEveryThread;
}

bool conflict(const PastAccess& past, const Access& access, const Split& split, size_t phase) {
  if (!past.access.writes && !access.writes) return false;
  if (past.access.last <= access.first || access.last <= past.access.first) return false;
  // The same thread touched the same items of the same buffer: its own order is enough.
  const bool same_items = past.access.own_share && access.own_share && past.split == split &&
                          (past.phase == phase || fixed(split)) &&
                          past.access.first == access.first && past.access.stride == access.stride;
  return !same_items;
}

bool needs_barrier(const std::vector<PastAccess>& past, const Step& step, size_t phase) {
  return std::ranges::any_of(past, [&](const PastAccess& earlier) {
    return std::ranges::any_of(step.accesses, [&](const Access& access) {
      return conflict(earlier, access, step.split, phase);
    });
  });
}

}  // namespace

int64_t Phase::portion_items(const Call& call, int thread_count) const {
  if (least_items == 0 || thread_count == 1) return 0;
  const int64_t bytes =
      item_bytes * std::max<int64_t>(call.row_count(split.rows) / kPortionRows, 1);
  int64_t items = bytes == 0 ? 1 : kPortionBytes / bytes;
  items = std::max<int64_t>((items + least_items - 1) / least_items, 1) * least_items;
  // A share of few portions is over before another thread has noticed.
  return split.item_count(call) >= 2 * items * thread_count ? items : 0;
}

std::vector<Interval> make_intervals(std::vector<Step> steps) {
  std::vector<Interval> intervals(1);
  std::vector<PastAccess> since_barrier;
  size_t phase_number = 0;
  for (Step& step : steps) {
    const bool goes_on = !intervals.back().empty() && intervals.back().back().split == step.split;
    if (!goes_on) ++phase_number;
    const bool barrier = needs_barrier(since_barrier, step, phase_number);
    if (barrier) {
      intervals.emplace_back();
      since_barrier.clear();
    }
    if (barrier || !goes_on) intervals.back().push_back({.split = step.split, .runs = {}});
    Phase& phase = intervals.back().back();
    phase.runs.push_back(std::move(step.run));
    phase.least_items = std::max(phase.least_items, step.least_items);
    phase.item_bytes += step.item_bytes;
    for (const Access& access : step.accesses)
      since_barrier.push_back({access, step.split, phase_number});
  }
  return intervals;
}

}  // namespace espalier::units::cpu
