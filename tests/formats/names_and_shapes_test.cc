// The sizes that readers stand on.
#include <gtest/gtest.h>

#include "espalier/formats/shape.h"

namespace espalier::formats {
namespace {

TEST(TensorBytes, AreCountedInWholeBlocks) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{}), 4);
  EXPECT_EQ(tensor_bytes(Encoding::kBF16, Shape{3, 5}), 30);
  EXPECT_EQ(tensor_bytes(Encoding::kQ6_K, Shape{2, 512}), 4 * 210);
  EXPECT_EQ(tensor_bytes(Encoding::kQ6_K, Shape{512, 2}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{7, 0, 3}), 0);
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{-1}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{INT64_MAX}), INT64_MAX);
  EXPECT_EQ(tensor_bytes(Encoding::kI16, Shape{INT64_MAX}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{int64_t{1} << 32, int64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{INT64_MAX, 2, 0}), std::nullopt);
}

}  // namespace
}  // namespace espalier::formats
