#include "espalier/units/cpu/plan.h"

#include <algorithm>
#include <iterator>

#include "espalier/base/check.h"

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

struct PastAccess {
  Access access;
  Split split;
};

bool conflict(const PastAccess& past, const Access& access, const Split& split) {
  if (!past.access.writes && !access.writes) return false;
  if (past.access.last <= access.first || access.last <= past.access.first) return false;
  // The same thread touched the same items of the same buffer: its own order is enough.
  const bool same_items = past.access.own_share && access.own_share && past.split == split &&
                          past.access.first == access.first && past.access.stride == access.stride;
  return !same_items;
}

}  // namespace

void place_barriers(std::vector<Step>& steps) {
  std::vector<PastAccess> since_barrier;
  for (Step& step : steps) {
    step.barrier_before =
        std::any_of(since_barrier.begin(), since_barrier.end(), [&step](const PastAccess& past) {
          return std::any_of(step.accesses.begin(), step.accesses.end(), [&](const Access& access) {
            return conflict(past, access, step.split);
          });
        });
    if (step.barrier_before) since_barrier.clear();
    for (const Access& access : step.accesses) since_barrier.push_back({access, step.split});
    step.accesses = {};
  }
}

int64_t ArenaPlanner::allocate(int64_t floats, int64_t first_op, int64_t last_op) {
  std::erase_if(live_, [first_op](const Block& block) { return block.last_op < first_op; });
  int64_t offset = 0;
  auto place = live_.begin();
  while (place != live_.end() && place->offset - offset < floats) {
    offset = place->offset + place->floats;
    ++place;
  }
  live_.insert(place, {offset, floats, last_op});
  size_ = std::max(size_, offset + floats);
  return offset;
}

}  // namespace espalier::units::cpu
