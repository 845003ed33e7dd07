// The golden files hold the comparison with gguf-py and torch (tests/formats); here are the
// properties.
#include "espalier/base/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace espalier {
namespace {

class Quantised : public testing::TestWithParam<Encoding> {
 protected:
  static constexpr int64_t kBlocks = 64;
  const EncodingInfo& info_ = encoding_info(GetParam());

  std::vector<std::byte> random_row(uint32_t seed) const {
    std::mt19937 random(seed);
    std::vector<std::byte> row(static_cast<size_t>(kBlocks * info_.block_bytes));
    for (std::byte& byte : row) byte = std::byte(random() & 0xff);
    return row;
  }
};

TEST_P(Quantised, AGroupIsTheSameNumbersInIntegerForm) {
  const int64_t size = group_elements(GetParam());
  ASSERT_TRUE(size == 16 || size == 32);
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const auto row = random_row(seed);
    std::vector<float> values(static_cast<size_t>(kBlocks * info_.block_elements));
    dequantize(GetParam(), row, values);
    for (int64_t group = 0; group * size < kBlocks * info_.block_elements; ++group) {
      QuantizedGroup decoded;
      decode_group(GetParam(), row, group, decoded);
      for (int64_t j = 0; j < size; ++j) {
        const float expected = values[static_cast<size_t>(group * size + j)];
        const float product = decoded.scale * static_cast<float>(decoded.q[j]);
        const float actual = product + decoded.offset;
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(actual));
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(actual), std::bit_cast<uint32_t>(expected));
        }
      }
    }
  }
}

TEST_P(Quantised, BlocksDoNotSeeEachOtherOrNeedAlignment) {
  const auto row = random_row(1);
  const auto elements = static_cast<size_t>(info_.block_elements);
  const auto bytes = static_cast<size_t>(info_.block_bytes);
  std::vector<float> whole(kBlocks * elements);
  dequantize(GetParam(), row, whole);
  for (size_t block = 0; block < kBlocks; ++block) {
    std::vector<std::byte> shifted(bytes + 1);
    std::memcpy(shifted.data() + 1, row.data() + block * bytes, bytes);
    std::vector<float> alone(elements);
    dequantize(GetParam(), std::span(shifted).subspan(1), alone);
    ASSERT_EQ(std::memcmp(alone.data(), whole.data() + block * elements, elements * sizeof(float)),
              0);
  }
}

TEST_P(Quantised, SizesThatDoNotFitAreBugs) {
  const auto row = random_row(2);
  std::vector<float> values(static_cast<size_t>(info_.block_elements));
  EXPECT_DEATH(dequantize(GetParam(),
                          std::span(row).first(static_cast<size_t>(info_.block_bytes) - 1), values),
               "CHECK");
  EXPECT_DEATH(dequantize(GetParam(), row, std::span(values).subspan(1)), "CHECK");
  QuantizedGroup group;
  const int64_t groups = kBlocks * info_.block_elements / group_elements(GetParam());
  EXPECT_DEATH(decode_group(GetParam(), row, groups, group), "CHECK");
  EXPECT_DEATH(decode_group(GetParam(), row, -1, group), "CHECK");
}

INSTANTIATE_TEST_SUITE_P(Encodings, Quantised,
                         testing::Values(Encoding::kQ4_0, Encoding::kQ4_1, Encoding::kQ5_0,
                                         Encoding::kQ5_1, Encoding::kQ8_0, Encoding::kQ2_K,
                                         Encoding::kQ3_K, Encoding::kQ4_K, Encoding::kQ5_K,
                                         Encoding::kQ6_K, Encoding::kIQ4_NL),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Dequantize, PlainTypesHaveNoGroups) {
  for (int i = 0; i <= static_cast<int>(Encoding::kBool); ++i)
    EXPECT_EQ(group_elements(static_cast<Encoding>(i)), 0);
}

TEST(Dequantize, AZeroOfANegativeScaleKeepsItsSign) {
  std::vector<std::byte> block(18, std::byte{0x88});  // all q are 0
  const uint16_t minus_one = 0xbc00;
  std::memcpy(block.data(), &minus_one, 2);
  std::vector<float> values(32);
  dequantize(Encoding::kQ4_0, block, values);
  for (const float value : values) EXPECT_TRUE(value == 0 && std::signbit(value));
}

TEST(Dequantize, NothingIsNothing) { dequantize(Encoding::kQ6_K, {}, {}); }

}  // namespace
}  // namespace espalier
