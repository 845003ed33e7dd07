// Every op of the reference unit against torch in fp64 (python/espalier_tools/golden/ops.py).
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "espalier/program/ops.h"
#include "espalier/program/validate.h"
#include "espalier/units/reference/reference_unit.h"
#include "tests/conformance/op_cases.h"

namespace espalier::conformance {
namespace {

// Both sides compute in fp64; what remains is the rounding of at most two fp32 values on the way.
constexpr double kRelativeTolerance = 3e-7;

class OpGolden : public testing::TestWithParam<OpCase> {};

TEST_P(OpGolden, GivesWhatTorchGives) {
  const OpCase& golden = GetParam();
  const Status valid = program::validate(golden.program);
  ASSERT_TRUE(valid.ok()) << valid.error().message();
  units::reference::ReferenceUnit unit;
  for (const int threads : {1, 3}) {
    units::CompileOptions options;
    options.threads = threads;
    const HeadResult result =
        run_program_on(unit, golden.program, golden.weights, golden.calls, options);
    ASSERT_EQ(result.values.size(), golden.expected.size());
    double largest = 1e-3;
    for (const float value : golden.expected) largest = std::max(largest, std::abs(double{value}));
    for (size_t i = 0; i < golden.expected.size(); ++i) {
      ASSERT_NEAR(result.values[i], golden.expected[i], kRelativeTolerance * largest) << i;
    }
    EXPECT_EQ(result.indices, golden.expected_index);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGolden, testing::ValuesIn(golden_op_cases()),
                         [](const auto& info) { return info.param.name; });

TEST(OpGoldenCases, CoverEveryOp) {
  std::set<program::OpKind> covered;
  for (const OpCase& golden : golden_op_cases()) {
    for (const auto& op : golden.program.ops) covered.insert(op.kind);
  }
  for (const auto& info : program::op_table())
    EXPECT_TRUE(covered.contains(info.kind)) << info.name;
}

}  // namespace
}  // namespace espalier::conformance
