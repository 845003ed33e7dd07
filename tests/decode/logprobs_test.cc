#include "espalier/decode/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace espalier::decode {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(count);
  std::ranges::generate(logits, [&] { return normal(generator); });
  return logits;
}

TEST(Argmax, TakesTheLowestIdOnTiesAndNeverNan) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(argmax(std::vector<float>{kNan, -5, kNan, -5}), 1);
  EXPECT_EQ(argmax(std::vector<float>{-kInfinity, -kInfinity}), 0);
  EXPECT_EQ(argmax(std::vector<float>{kNan, kNan}), 0);
  EXPECT_EQ(argmax({}), 0);
}

TEST(LogSumExp, EqualsTheSumInLongDoubles) {
  for (const size_t count : {1, 2, 15, 16, 17, 1000, 49152}) {
    const std::vector<float> logits = random_logits(count, static_cast<uint32_t>(count));
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    EXPECT_NEAR(log_sum_exp(logits), static_cast<double>(std::log(sum)), 2e-6) << count;
  }
}

TEST(LogSumExp, DoesNotOverflowOnLargeLogits) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{3e4F, 3e4F}), 3e4 + std::log(2.0), 1e-9);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-3e4F, -kInfinity}), -3e4, 1e-9);
}

TEST(BestLogprobs, AreTheFirstOfAStableSort) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::vector<float> logits = random_logits(1 + seed * 3, seed);
    for (float& logit : logits) logit = std::round(logit);  // many ties
    std::vector<TokenId> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [&](TokenId id) { return logits[static_cast<size_t>(id)]; });
    std::vector<TokenLogprob> best(std::min<size_t>(logits.size(), 5));
    best_logprobs(logits, log_sum_exp(logits), best);
    for (size_t i = 0; i < best.size(); ++i) {
      EXPECT_EQ(best[i].id, order[i]) << "seed " << seed << " place " << i;
      EXPECT_FLOAT_EQ(best[i].logprob, static_cast<float>(logits[static_cast<size_t>(order[i])] -
                                                          log_sum_exp(logits)));
    }
  }
}

}  // namespace
}  // namespace espalier::decode
