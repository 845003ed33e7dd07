#include "espalier/program/work.h"

#include <gtest/gtest.h>

#include "tests/program/small_program.h"

namespace espalier::program {
namespace {

WorkOptions halves(int64_t rows, int64_t committed) {
  WorkOptions options{.rows = rows, .committed = committed, .weight_bytes = {}};
  options.weight_bytes = [](const Weight& weight) { return weight.rows * weight.columns * 2; };
  return options;
}

TEST(Work, CountsMultiplicationsAndAdditionsOfLinearLayers) {
  const auto work = count_work(small_program(), halves(8, 0));
  EXPECT_EQ(work.by_kind.at(OpKind::kLinear).flops, 2 * 8 * (12 * 12 + 6 * 12 + 6 * 12));
  EXPECT_EQ(work.by_kind.at(OpKind::kShortConv).flops, 2 * 8 * 12 * 3);
}

TEST(Work, CountsTheHeadForTheSelectedRowsOnly) {
  const auto work = count_work(small_program(), halves(8, 0));
  EXPECT_EQ(work.by_kind.at(OpKind::kHeadArgmax).flops, 2 * 2 * 25 * 12);
  EXPECT_EQ(work.by_kind.at(OpKind::kHeadArgmax).activation_bytes, 4 * 2 * (12 + 3 + 3));
}

TEST(Work, CountsAttentionOverCommittedPositionsAndTheTriangleOfTheWindow) {
  const auto work = count_work(small_program(), halves(4, 10));
  EXPECT_EQ(work.by_kind.at(OpKind::kAttention).flops, 4 * 12 * (4 * 10 + 4 * 5 / 2));
  EXPECT_EQ(work.by_kind.at(OpKind::kAttention).kv_bytes, 2 * (10 + 4) * 6 * 2);
  EXPECT_EQ(work.by_kind.at(OpKind::kKvWrite).kv_bytes, 2 * 4 * 6 * 2);
  EXPECT_EQ(work.by_kind.at(OpKind::kShortConv).kv_bytes, (2 + 4) * 12 * 2);
}

TEST(Work, ReadsTheWeightsOnceWhateverTheNumberOfRows) {
  const auto one = count_work(small_program(), halves(1, 0));
  const auto all = count_work(small_program(), halves(0, 0));
  EXPECT_EQ(one.total.weight_bytes, all.total.weight_bytes);
  EXPECT_EQ(one.total.weight_bytes, 2 * (36 + 12 + 144 + 72 + 6 + 72 + 300));
  EXPECT_LT(one.total.flops, all.total.flops);
}

// Staged rows and convolution rows do not grow with the text.
TEST(Work, CountsWhatAPositionTakesInKeysAndValuesAlone) {
  EXPECT_EQ(kv_elements_per_position(small_program()), 2 * 6);
  Program program;  // as SmolLM2-135M: 30 layers of 3 KV heads of 64 channels
  for (int layer = 0; layer < 30; ++layer) {
    program.states.push_back({"kv", StateKind::kKeyValue, {512, 3 * 64}});
  }
  EXPECT_EQ(kv_elements_per_position(program) * 2, 23'040);
}

TEST(Work, IsTheSumOfItsKinds) {
  const auto work = count_work(small_program(), halves(5, 7));
  Work sum;
  for (const auto& [kind, part] : work.by_kind) sum += part;
  EXPECT_EQ(sum.flops, work.total.flops);
  EXPECT_EQ(sum.bytes(), work.total.bytes());
}

}  // namespace
}  // namespace espalier::program
