#include "espalier/measure/statistics.h"

#include <gtest/gtest.h>

namespace espalier::measure {
namespace {

TEST(Statistics, QuantilesLieBetweenTheNeighbouringSamples) {
  EXPECT_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(quantile({10, 20}, 0.25), 12.5);
  EXPECT_EQ(quantile({7}, 0.9), 7);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(Statistics, AnInterruptedSampleDoesNotMoveTheMedian) {
  const Summary summary = summarize({1, 1, 1, 1, 1000});
  EXPECT_EQ(summary.median, 1);
  EXPECT_EQ(summary.count, 5U);
}

}  // namespace
}  // namespace espalier::measure
