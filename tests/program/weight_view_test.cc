#include "espalier/program/weight_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/program/validate.h"

namespace espalier::program {
namespace {

using testing::HasSubstr;

class WeightView : public testing::Test {
 protected:
  // Tensors over one block of bytes 0, 1, 2, ...
  Weights weights(Encoding encoding, std::vector<int64_t> shape) {
    TensorView view{.encoding = encoding, .shape = std::move(shape), .bytes = {}};
    const auto size = static_cast<size_t>(view.rows() * view.row_bytes());
    for (size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(i));
    view.bytes = bytes_;
    return Weights({{"w", view}}, {});
  }
  std::vector<std::byte> bytes_;
};

TEST_F(WeightView, IsTheRowsOfTheTensor) {
  const auto view = weight_view({"w", 2, 3, 5, 6}, weights(Encoding::kF16, {6, 5}));
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view->shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(view->bytes.size(), 30u);
  EXPECT_EQ(view->bytes.front(), std::byte{20});
}

TEST_F(WeightView, ReadsMiddleDimensionsAsRows) {
  const auto view = weight_view({"w", 0, 6, 3, 6}, weights(Encoding::kF32, {6, 1, 3}));
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view->shape, (std::vector<int64_t>{6, 3}));
}

TEST_F(WeightView, ReadsAPartOfAVectorAsRowsOfOneColumn) {
  const auto view = weight_view({"w", 4, 2, 1, 9}, weights(Encoding::kF32, {9}));
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view->shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(view->bytes.front(), std::byte{16});
}

TEST_F(WeightView, KeepsWholeRowsOfBlocks) {
  const auto view = weight_view({"w", 1, 1, 64, 3}, weights(Encoding::kQ8_0, {3, 64}));
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view->bytes.size(), 68u);
  EXPECT_EQ(view->bytes.front(), std::byte{68});
}

TEST_F(WeightView, KeepsTheScalesOfItsRows) {
  auto tensors = weights(Encoding::kAffine4G32, {3, 64}).all();
  const std::vector<std::byte> scales(12), offsets(12);
  tensors["w"].beside = {Encoding::kBF16, scales, offsets};
  const auto view = weight_view({"w", 1, 2, 64, 3}, Weights(tensors, {}));
  ASSERT_TRUE(view.ok()) << view.error().message();
  EXPECT_EQ(view->bytes.size(), 64u);
  EXPECT_EQ(view->bytes.front(), std::byte{32});
  EXPECT_EQ(view->beside.scales.data(), scales.data() + 4);
  EXPECT_EQ(view->beside.scales.size(), 8u);
  EXPECT_EQ(view->beside.offsets.data(), offsets.data() + 4);
  EXPECT_EQ(view->byte_count(), 80);
}

TEST_F(WeightView, RefusesAnotherShape) {
  const auto other = weights(Encoding::kF32, {6, 4});
  EXPECT_THAT(weight_view({"w", 0, 6, 5, 6}, other).error().message(),
              HasSubstr("tensor 'w' has the wrong shape: expected [6, 5], got [6, 4]"));
  EXPECT_THAT(weight_view({"w", 0, 1, 4, 5}, other).error().message(), HasSubstr("wrong shape"));
}

TEST_F(WeightView, RefusesAPartOfAVectorOfBlocks) {
  EXPECT_FALSE(weight_view({"w", 0, 32, 1, 32}, weights(Encoding::kQ8_0, {32})).ok());
}

TEST_F(WeightView, NamesAMissingTensor) {
  EXPECT_THAT(weight_view({"v", 0, 6, 5, 6}, weights(Encoding::kF32, {6, 5})).error().message(),
              HasSubstr("tensor 'v' is missing"));
}

}  // namespace
}  // namespace espalier::program
