#include "espalier/base/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace espalier {
namespace {

using testing::HasSubstr;

TEST(TensorView, CountsRowsAndBytesOfBlocks) {
  const std::vector<std::byte> bytes(2 * 3 * 2 * 20);
  const TensorView view{Encoding::kQ4_1, {2, 3, 64}, bytes};
  EXPECT_EQ(view.element_count(), 384);
  EXPECT_EQ(view.rows(), 6);
  EXPECT_EQ(view.columns(), 64);
  EXPECT_EQ(view.row_bytes(), 40);
  EXPECT_EQ(view.row(5).data(), bytes.data() + 200);
  EXPECT_EQ(view.row(5).size(), 40u);
}

TEST(TensorView, VectorsAndScalarsAreOneRow) {
  EXPECT_EQ((TensorView{Encoding::kF32, {7}, {}}.rows()), 1);
  EXPECT_EQ((TensorView{Encoding::kF32, {7}, {}}.columns()), 7);
  EXPECT_EQ((TensorView{Encoding::kF32, {}, {}}.element_count()), 1);
  EXPECT_EQ((TensorView{Encoding::kF32, {}, {}}.row_bytes()), 4);
  EXPECT_EQ((TensorView{Encoding::kF32, {0, 4}, {}}.rows()), 0);
}

TEST(Weights, KeepTheirOwnersAlive) {
  auto buffer = std::make_shared<std::vector<std::byte>>(4);
  const std::weak_ptr<std::vector<std::byte>> watch = buffer;
  {
    const Weights weights({{"a", TensorView{Encoding::kF32, {1}, *buffer}}}, {buffer});
    buffer.reset();
    EXPECT_FALSE(watch.expired());
    const Weights copy = weights;
    EXPECT_TRUE(copy.contains("a"));
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Weights, AMissingTensorNamesTheNearest) {
  const Weights weights({{"model.layers.0.mlp.up_proj.weight", {}}, {"lm_head.weight", {}}}, {});
  const auto missing = weights.get("model.layers.0.mlp.up.weight");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(),
              HasSubstr("nearest name is 'model.layers.0.mlp.up_proj.weight'"));
  EXPECT_THAT(Weights().get("a").error().message(), HasSubstr("a checkpoint without tensors"));
}

TEST(Weights, AWrongShapeNamesBoth) {
  const Weights weights({{"a", TensorView{Encoding::kF32, {2, 3}, {}}}}, {});
  EXPECT_TRUE(weights.get("a", std::array<int64_t, 2>{2, 3}).ok());
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 2}, {2}, {2, 3, 1}, {}}) {
    const auto wrong = weights.get("a", shape);
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().expected, shape_text(shape));
    EXPECT_EQ(wrong.error().actual, "[2, 3]");
  }
}

}  // namespace
}  // namespace espalier
