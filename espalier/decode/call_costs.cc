#include "espalier/decode/call_costs.h"

#include <algorithm>

#include "espalier/base/check.h"

namespace espalier::decode {
namespace {

// A row more costs so much of a call of one row, until it is measured: on CPUs with AVX-512 VNNI
// and AMX it is less, with AVX2 more (docs/performance/results.md).
constexpr double kRowShare = 0.08;
constexpr double kWeight = 0.15;       // of the newest call
constexpr double kFasterWeight = 0.4;  // of one that took less: what slows calls down is not theirs
constexpr double kOutlier = 2.0;       // times what was known: counts as this much

}  // namespace

CallCosts::CallCosts(int64_t max_rows) : costs_(static_cast<size_t>(max_rows) + 1) {}

void CallCosts::learn(int64_t rows, double elapsed_ms) {
  CHECK_GE(rows, 1);
  Cost& cost = costs_[static_cast<size_t>(rows)];
  if (cost.count++ == 0) {
    cost.ms = elapsed_ms;
    return;
  }
  const double weight = elapsed_ms < cost.ms ? kFasterWeight : kWeight;
  cost.ms += weight * (std::min(elapsed_ms, kOutlier * cost.ms) - cost.ms);
}

std::vector<double> CallCosts::measured_ms() const {
  std::vector<double> measured;
  for (const Cost& cost : costs_) measured.push_back(cost.count > 0 ? cost.ms : 0);
  return measured;
}

void CallCosts::adopt(std::span<const double> measured_ms) {
  if (measured_ms.size() != costs_.size()) return;
  for (size_t rows = 1; rows < costs_.size(); ++rows) {
    if (measured_ms[rows] > 0) costs_[rows] = {.ms = measured_ms[rows], .count = 1};
  }
}

double CallCosts::call_ms(int64_t rows) const {
  const auto wanted = static_cast<size_t>(rows);
  size_t below = wanted;
  while (below > 0 && costs_[below].count == 0) --below;
  size_t above = wanted;
  while (above < costs_.size() && costs_[above].count == 0) ++above;
  const auto relative = [](size_t n) { return 1 + kRowShare * (static_cast<double>(n) - 1); };
  if (below == 0 && above == costs_.size()) return relative(wanted);
  if (below == 0) return costs_[above].ms * relative(wanted) / relative(above);
  if (above == costs_.size()) return costs_[below].ms * relative(wanted) / relative(below);
  if (below == above) return costs_[below].ms;
  const double part = static_cast<double>(wanted - below) / static_cast<double>(above - below);
  return costs_[below].ms + part * (costs_[above].ms - costs_[below].ms);
}

}  // namespace espalier::decode
