#include "espalier/units/cpu/plan.h"

#include <algorithm>

namespace espalier::units::cpu {

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
