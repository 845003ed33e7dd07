// The golden files hold the comparison with gguf-py and torch (tests/formats); here are the
// properties.
#include "espalier/base/dequantize.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace espalier {
namespace {

// A row of random blocks; scales that lie beside are of any bits, too.
struct Row {
  std::vector<std::byte> bytes, scales, offsets;
  TensorView view;
};

class Quantised : public testing::TestWithParam<Encoding> {
 protected:
  static constexpr int64_t kBlocks = 64;
  const EncodingInfo& info_ = encoding_info(GetParam());

  Row random_row(uint32_t seed) const {
    std::mt19937 random(seed);
    const auto random_bytes = [&](int64_t count) {
      std::vector<std::byte> bytes(static_cast<size_t>(count));
      for (std::byte& byte : bytes) byte = std::byte(random() & 0xff);
      return bytes;
    };
    Row row;
    row.bytes = random_bytes(kBlocks * info_.block_bytes);
    row.view = {GetParam(), {kBlocks * info_.block_elements}, row.bytes};
    if (!info_.scales_beside) return row;
    const Encoding scales = std::array{Encoding::kF32, Encoding::kF16, Encoding::kBF16}[seed % 3];
    row.scales = random_bytes(kBlocks * encoding_info(scales).block_bytes);
    row.offsets = random_bytes(kBlocks * encoding_info(scales).block_bytes);
    row.view.beside = {scales, row.scales, row.offsets};
    return row;
  }
};

TEST_P(Quantised, AGroupIsTheSameNumbersInIntegerForm) {
  const int64_t size = group_elements(GetParam());
  ASSERT_TRUE(size == 16 || size == 32 || size == 64 || size == 128);
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const Row row = random_row(seed);
    std::vector<float> values(static_cast<size_t>(kBlocks * info_.block_elements));
    dequantize(row.view, values);
    for (int64_t group = 0; group * size < kBlocks * info_.block_elements; ++group) {
      QuantizedGroup decoded;
      decode_group(row.view, 0, group, decoded);
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
  const Row row = random_row(1);
  std::vector<float> whole(static_cast<size_t>(row.view.columns()));
  dequantize(row.view, whole);
  TensorView blocks = row.view;  // a block a row
  blocks.shape = {kBlocks, info_.block_elements};
  for (int64_t block = 0; block < kBlocks; ++block) {
    TensorView one = blocks.row_range(block, 1);
    std::vector<std::byte> bytes(one.bytes.size() + 1);
    std::memcpy(bytes.data() + 1, one.bytes.data(), one.bytes.size());
    one.bytes = std::span(bytes).subspan(1);
    std::vector<float> alone(static_cast<size_t>(info_.block_elements));
    dequantize(one, alone);
    ASSERT_EQ(std::memcmp(alone.data(), &whole[static_cast<size_t>(block) * alone.size()],
                          alone.size() * sizeof(float)),
              0);
  }
}

TEST_P(Quantised, SizesThatDoNotFitAreBugs) {
  const Row row = random_row(2);
  std::vector<float> values(static_cast<size_t>(info_.block_elements));
  const auto block = std::span(row.bytes).first(static_cast<size_t>(info_.block_bytes));
  EXPECT_DEATH(dequantize(GetParam(), block.first(block.size() - 1), values), "CHECK");
  EXPECT_DEATH(dequantize(GetParam(), row.bytes, std::span(values).subspan(1)), "CHECK");
  EXPECT_DEATH(dequantize(row.view, values), "CHECK");
  QuantizedGroup group;
  const int64_t groups = kBlocks * info_.block_elements / group_elements(GetParam());
  EXPECT_DEATH(decode_group(row.view, 0, groups, group), "CHECK");
  EXPECT_DEATH(decode_group(row.view, 0, -1, group), "CHECK");
  if (!info_.scales_beside) return;
  EXPECT_DEATH(dequantize(GetParam(), block, values), "CHECK");
  TensorView short_of_scales = row.view;
  short_of_scales.beside.offsets = short_of_scales.beside.offsets.first(row.offsets.size() - 1);
  EXPECT_DEATH(decode_group(short_of_scales, 0, groups - 1, group), "CHECK");
}

INSTANTIATE_TEST_SUITE_P(Encodings, Quantised,
                         testing::Values(Encoding::kQ4_0, Encoding::kQ4_1, Encoding::kQ5_0,
                                         Encoding::kQ5_1, Encoding::kQ8_0, Encoding::kQ2_K,
                                         Encoding::kQ3_K, Encoding::kQ4_K, Encoding::kQ5_K,
                                         Encoding::kQ6_K, Encoding::kIQ4_NL, Encoding::kAffine4G32,
                                         Encoding::kAffine4G64, Encoding::kAffine4G128,
                                         Encoding::kAffine8G32, Encoding::kAffine8G64,
                                         Encoding::kAffine8G128),
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

TEST(Dequantize, AffineElementsBeginAtTheLowestBits) {
  std::vector<std::byte> bytes(16, std::byte{0});
  bytes[0] = std::byte{0x21};
  bytes[15] = std::byte{0xf3};
  const std::array<float, 1> scale = {0.5f}, offset = {-2.0f};
  const TensorView view{
      Encoding::kAffine4G32,
      {1, 32},
      bytes,
      {Encoding::kF32, std::as_bytes(std::span(scale)), std::as_bytes(std::span(offset))}};
  std::vector<float> values(32);
  dequantize(view, values);
  EXPECT_EQ(values[0], -1.5f);
  EXPECT_EQ(values[1], -1.0f);
  EXPECT_EQ(values[2], -2.0f);
  EXPECT_EQ(values[30], -0.5f);
  EXPECT_EQ(values[31], 5.5f);
}

TEST(Dequantize, NothingIsNothing) { dequantize(Encoding::kQ6_K, {}, {}); }

}  // namespace
}  // namespace espalier
