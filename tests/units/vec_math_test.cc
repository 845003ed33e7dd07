// exp and its relatives against double precision, over a stride of all floats; and scalar forms
// against vector ones.
#include "espalier/base/vec_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace espalier {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance from `exact` in units in the last place of a float of that size.
double ulps(float value, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::abs(value - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

TEST(VecMath, ExpIsWithinOneUlpOfEveryNormalAndDenormalResult) {
  double worst = 0;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 997) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!(x > -103.9f && x < 88.72f)) continue;
    worst = std::max(worst, ulps(exp_of(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LT(worst, 1.0);
  EXPECT_GT(worst, 0.5);  // the test looks at something
}

TEST(VecMath, ExpOfSpecialValues) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(kInfinity), kInfinity);
  EXPECT_EQ(exp_of(89.0f), kInfinity);
  EXPECT_EQ(exp_of(-kInfinity), 0.0f);
  EXPECT_EQ(exp_of(-104.0f), 0.0f);
  EXPECT_GT(exp_of(-103.9f), 0.0f);
  EXPECT_LT(exp_of(88.72f), kInfinity);
  EXPECT_TRUE(std::isnan(exp_of(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VecMath, ExpNeverDecreasesByMoreThanAnUlp) {
  float before = exp_of(-104.0f);
  for (float x = -104.0f; x < 88.7f; x += 0.0001f) {
    const float value = exp_of(x);
    EXPECT_GE(value, std::nextafter(before, 0.0f)) << x;
    before = value;
  }
}

TEST(VecMath, SigmoidIsWithinThreeUlp) {
  double worst = 0;
  for (float x = -80.0f; x < 80.0f; x += 0.00037f) {
    worst = std::max(worst, ulps(sigmoid_of(x), 1 / (1 + std::exp(-static_cast<double>(x)))));
  }
  EXPECT_LT(worst, 3.0);
  EXPECT_EQ(sigmoid_of(kInfinity), 1.0f);
  EXPECT_EQ(sigmoid_of(-kInfinity), 0.0f);
}

TEST(VecMath, SixteenLanesGiveTheBitsOfOne) {
  float x[16], y[16];
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 16 * 9973) {
    for (uint32_t i = 0; i < 16; ++i)
      x[i] = std::bit_cast<float>(static_cast<uint32_t>(bits) + i * 9973);
    exp(Vec16::load(x)).store(y);
    for (int i = 0; i < 16; ++i) {
      const float one = exp_of(x[i]);
      ASSERT_TRUE(std::bit_cast<uint32_t>(one) == std::bit_cast<uint32_t>(y[i]) || std::isnan(one))
          << x[i];
    }
  }
}

TEST(Vec16, SumsAndMaximaFollowTheTree) {
  float x[16];
  for (int i = 0; i < 16; ++i) x[i] = i == 0 ? 1e8f : static_cast<float>(i);
  // ((0+8)+(4+12)) + ((2+10)+(6+14)) of lanes, then the odd ones: 1e8 swallows what it meets first.
  const float even = ((x[0] + x[8]) + (x[4] + x[12])) + ((x[2] + x[10]) + (x[6] + x[14]));
  const float odd = ((x[1] + x[9]) + (x[5] + x[13])) + ((x[3] + x[11]) + (x[7] + x[15]));
  EXPECT_EQ(reduce_add(Vec16::load(x)), even + odd);
  EXPECT_EQ(reduce_max(Vec16::load(x)), 1e8f);
}

TEST(Vec16, PartialLoadsAndStoresTouchOnlyTheirLanes) {
  const float x[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  for (int64_t count = 0; count <= 16; ++count) {
    float y[16];
    std::fill(y, y + 16, -1.0f);
    Vec16::load_partial(x, count).store_partial(y, 16);
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y[i], i < count ? x[i] : 0.0f);
    std::fill(y, y + 16, -1.0f);
    Vec16::load(x).store_partial(y, count);
    for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(y[i], i < count ? x[i] : -1.0f);
  }
}

TEST(Vec16, IntegersAreRoundedToEven) {
  const float x[16] = {0.5f,  1.5f,  2.5f,     -0.5f,     -1.5f,     -2.5f,  0.49999997f, 32639.0f,
                       -0.0f, 3.49f, -3.5001f, 127.4999f, -32639.0f, 1e-40f, -1e-40f,     7.0f};
  int32_t y[16];
  Vec16::load(x).store_int32(y);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(y[i], static_cast<int32_t>(std::nearbyint(x[i]))) << x[i];
}

}  // namespace
}  // namespace espalier
