#include "espalier/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace espalier {
namespace {

// Random123 1.14, tests/kat_vectors: "philox4x32 10".
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformDraw, IsEvenOverPositionsSequencesAndSeeds) {
  constexpr int kBins = 50;
  constexpr int kDraws = 100000;
  for (int axis = 0; axis < 3; ++axis) {
    std::vector<int> bins(kBins);
    for (uint64_t i = 0; i < kDraws; ++i) {
      const double draw = uniform_draw(axis == 0 ? i : 7, axis == 1 ? i : 7, axis == 2 ? i : 7);
      ASSERT_GE(draw, 0);
      ASSERT_LT(draw, 1);
      ++bins[static_cast<size_t>(draw * kBins)];
    }
    double chi_square = 0;
    for (const int count : bins)
      chi_square += std::pow(count - kDraws / kBins, 2) / (kDraws / kBins);
    EXPECT_LT(chi_square, 85.4) << "axis " << axis;  // p = 0.001 at 49 degrees of freedom
  }
}

}  // namespace
}  // namespace espalier
