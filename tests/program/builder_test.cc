#include "espalier/program/builder.h"

#include <gtest/gtest.h>

#include "espalier/program/ops.h"
#include "tests/program/small_program.h"

namespace espalier::program {
namespace {

TEST(Builder, GivesOutputsTheShapesOfTheOpTable) {
  const Program program = small_program();
  ASSERT_EQ(program.outputs.size(), 2u);
  EXPECT_EQ(program.value(program.outputs[0]).shape, (Shape{2, 3}));
  EXPECT_EQ(program.value(program.outputs[1]).dtype, Encoding::kI32);
}

TEST(Builder, SharesWeightsAndStatesThatAreNamedTwice) {
  Builder builder("twice", 4, 16, 1, Head::kLogits);
  EXPECT_EQ(builder.matrix("w", 4, 6), builder.matrix("w", 4, 6));
  EXPECT_NE(builder.matrix("w", 4, 6), builder.matrix_rows("w", 4, 2, 2, 6));
  EXPECT_EQ(builder.key_value("kv", 8), builder.key_value("kv", 8));
}

TEST(Builder, PutsTheScopeBeforeTheNamesOfValues) {
  const Program program = small_program();
  const auto named = [&](std::string_view name) {
    return std::count_if(program.values.begin(), program.values.end(),
                         [&](const Value& value) { return value.name == name; });
  };
  EXPECT_EQ(named("layers.0.conv"), 1);
  EXPECT_EQ(named("layers.1.attention"), 1);
}

TEST(BuilderDeathTest, DiesOfItsOwnMisuse) {
  Builder builder("misuse", 4, 16, 1, Head::kLogits);
  const auto x = builder.input("embeddings", {4, 6}, Encoding::kF32);
  EXPECT_DEATH(builder.linear("y", x, builder.matrix("w", 3, 5)), "linear.columns");
  EXPECT_DEATH(builder.add("y", x, 99), "CHECK");
  EXPECT_DEATH(builder.rms_norm("y", x, builder.vector("w", 4), 1e-5), "rms_norm.group");
}

TEST(BuilderDeathTest, DoesNotFinishAProgramWithoutOutputs) {
  Builder builder("empty", 4, 16, 1, Head::kLogits);
  builder.input("embeddings", {4, 6}, Encoding::kF32);
  EXPECT_DEATH(builder.finish(), "program.head");
}

TEST(OpTable, HasARowForEachKindInOrderWithANameOfItsOwn) {
  for (const OpInfo& info : op_table()) {
    EXPECT_EQ(&op_info(info.kind), &info);
    EXPECT_EQ(find_op(info.name), &info);
    EXPECT_NE(info.shapes, nullptr);
    EXPECT_NE(info.flops, nullptr);
  }
  EXPECT_EQ(op_table().size(), static_cast<size_t>(OpKind::kMeanPool) + 1);
  EXPECT_EQ(find_op("softmax"), nullptr);
}

}  // namespace
}  // namespace espalier::program
