// Median and quantiles of samples. Means are not offered: one interrupted sample would move them.
#pragma once

#include <cstddef>
#include <vector>

namespace espalier::measure {

// The q-quantile (0 <= q <= 1), linear between the neighbouring samples; 0 of no samples.
double quantile(std::vector<double> samples, double q);

struct Summary {
  size_t count = 0;
  double p10 = 0;
  double median = 0;
  double p90 = 0;
};

Summary summarize(const std::vector<double>& samples);

}  // namespace espalier::measure
