#include "espalier/units/cpu/call.h"

#include <algorithm>

#include "espalier/base/check.h"

namespace espalier::units::cpu {

WindowPaths::WindowPaths(int64_t max_rows)
    : max_rows_(max_rows),
      rows_(static_cast<size_t>(max_rows * max_rows)),
      lengths_(static_cast<size_t>(max_rows)) {}

void WindowPaths::assign(std::span<const int32_t> parents, bool whole) {
  CHECK_LE(static_cast<int64_t>(parents.size()), max_rows_);
  for (size_t row = 0; row < parents.size(); ++row) {
    const int32_t parent = parents[row];
    CHECK_GE(parent, -1);
    CHECK_LT(parent, static_cast<int32_t>(row));
    int32_t* path = rows_.data() + static_cast<int64_t>(row) * max_rows_;
    const std::span<const int32_t> ancestors = parent < 0 ? std::span<const int32_t>() : of(parent);
    *std::copy(ancestors.begin(), ancestors.end(), path) = static_cast<int32_t>(row);
    lengths_[row] = static_cast<int32_t>(ancestors.size()) + 1;
  }
  if (!whole || parents.empty()) return;
  CHECK_EQ(static_cast<size_t>(lengths_[parents.size() - 1]), parents.size());  // a chain
  const std::span<const int32_t> all = of(static_cast<int64_t>(parents.size()) - 1);
  for (size_t row = 0; row + 1 < parents.size(); ++row) {
    std::ranges::copy(all, rows_.data() + static_cast<int64_t>(row) * max_rows_);
    lengths_[row] = static_cast<int32_t>(all.size());
  }
}

}  // namespace espalier::units::cpu
