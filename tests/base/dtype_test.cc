#include "espalier/base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace espalier {
namespace {

// A 16-bit float type by its definition, to compare conversions with.
struct Definition {
  int exponent_bits;
  int mantissa_bits;
  float (*widen)(uint16_t);
  uint16_t (*narrow)(float);

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }
  // The value of `bits` below 0x8000; infinity's is what the next finite number would be.
  double value(uint16_t bits) const {
    const int exponent = bits >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias() - mantissa_bits);
    return std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias() - mantissa_bits);
  }
};

class SixteenBits : public testing::TestWithParam<Definition> {
 protected:
  // The nearest of all numbers of the type, the even one of two: by search.
  uint16_t nearest(float value) const {
    const double magnitude = std::abs(static_cast<double>(value));
    const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (magnitude >= values_.back()) return sign | GetParam().infinity();
    const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
    auto bits = static_cast<uint16_t>(above - values_.begin());
    if (bits > 0) {
      const double to_upper = *above - magnitude;
      const double to_lower = magnitude - *(above - 1);
      if (to_lower < to_upper || (to_lower == to_upper && bits % 2 != 0)) --bits;
    }
    return sign | bits;
  }

  void SetUp() override {
    for (int bits = 0; bits <= GetParam().infinity(); ++bits) {
      values_.push_back(GetParam().value(static_cast<uint16_t>(bits)));
    }
  }
  std::vector<double> values_;
};

TEST_P(SixteenBits, EveryNumberIsWidenedExactlyAndComesBack) {
  const Definition& type = GetParam();
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const uint16_t magnitude = bits & 0x7fff;
    const float wide = type.widen(bits);
    EXPECT_EQ(std::signbit(wide), bits >= 0x8000) << bits;
    if (magnitude > type.infinity()) {
      EXPECT_TRUE(std::isnan(wide)) << bits;
      EXPECT_EQ(type.narrow(wide), bits | 1 << (type.mantissa_bits - 1))
          << bits;  // quiet, payload kept
    } else {
      const double value = magnitude == type.infinity() ? std::numeric_limits<double>::infinity()
                                                        : type.value(magnitude);
      EXPECT_EQ(std::abs(static_cast<double>(wide)), value) << bits;
      EXPECT_EQ(type.narrow(wide), bits);
    }
  }
}

TEST_P(SixteenBits, NarrowingRoundsToNearestEvenAroundEveryMidpoint) {
  for (size_t i = 0; i + 1 < values_.size(); ++i) {
    const auto midpoint = static_cast<float>((values_[i] + values_[i + 1]) / 2);
    if (std::isinf(midpoint)) continue;  // bfloat16's last midpoint is no float
    for (const float value :
         {midpoint, std::nextafter(midpoint, 0.0f), std::nextafter(midpoint, INFINITY)}) {
      ASSERT_EQ(GetParam().narrow(value), nearest(value)) << value;
      ASSERT_EQ(GetParam().narrow(-value), nearest(-value)) << value;
    }
  }
}

TEST_P(SixteenBits, NarrowingRoundsRandomFloatsToNearestEven) {
  std::mt19937 random(4);
  for (int i = 0; i < 500'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(GetParam().narrow(value), nearest(value)) << value;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SixteenBits,
                         testing::Values(Definition{5, 10, half_to_float, float_to_half},
                                         Definition{8, 7, bfloat16_to_float, float_to_bfloat16}),
                         [](const auto& info) { return info.index == 0 ? "Half" : "Bfloat16"; });

TEST(Encodings, NamesLeadBackToTheirEncoding) {
  int known = 0;
  for (int i = 0; i <= static_cast<int>(Encoding::kIQ4_NL); ++i, ++known) {
    const auto encoding = static_cast<Encoding>(i);
    EXPECT_EQ(encoding_from_name(name_of(encoding)), encoding);
  }
  EXPECT_EQ(known, 25);
  EXPECT_EQ(encoding_from_name("q9_z"), std::nullopt);
}

TEST(Encodings, BlocksHaveTheSizesOfGgml) {
  const auto bits_per_element = [](Encoding encoding) {
    const auto& info = encoding_info(encoding);
    return 8.0 * static_cast<double>(info.block_bytes) / static_cast<double>(info.block_elements);
  };
  EXPECT_EQ(bits_per_element(Encoding::kQ4_0), 4.5);
  EXPECT_EQ(bits_per_element(Encoding::kQ4_1), 5.0);
  EXPECT_EQ(bits_per_element(Encoding::kQ5_0), 5.5);
  EXPECT_EQ(bits_per_element(Encoding::kQ5_1), 6.0);
  EXPECT_EQ(bits_per_element(Encoding::kQ8_0), 8.5);
  EXPECT_EQ(bits_per_element(Encoding::kQ2_K), 2.625);
  EXPECT_EQ(bits_per_element(Encoding::kQ3_K), 3.4375);
  EXPECT_EQ(bits_per_element(Encoding::kQ4_K), 4.5);
  EXPECT_EQ(bits_per_element(Encoding::kQ5_K), 5.5);
  EXPECT_EQ(bits_per_element(Encoding::kQ6_K), 6.5625);
  EXPECT_EQ(bits_per_element(Encoding::kIQ4_NL), 4.5);
}

}  // namespace
}  // namespace espalier
