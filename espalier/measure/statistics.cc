#include "espalier/measure/statistics.h"

#include <algorithm>

namespace espalier::measure {

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  std::ranges::sort(samples);
  const double place = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (place - static_cast<double>(below)) * (samples[above] - samples[below]);
}

Summary summarize(const std::vector<double>& samples) {
  return {.count = samples.size(),
          .p10 = quantile(samples, 0.1),
          .median = quantile(samples, 0.5),
          .p90 = quantile(samples, 0.9)};
}

}  // namespace espalier::measure
