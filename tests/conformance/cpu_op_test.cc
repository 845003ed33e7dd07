// Every op on the cpu unit: against torch in fp64 with weights kept in fp32, and with == between
// kernel sets and numbers of threads, in each of its arithmetics.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "espalier/units/cpu/cpu_unit.h"
#include "tests/conformance/op_cases.h"

namespace espalier::conformance {
namespace {

// Of the largest value. A handful of fp32 roundings; where K and V are kept in fp16, two of 2^-12
// on average.
constexpr double kFloatTolerance = 4e-6;
constexpr double kHalfTolerance = 0x1p-10;
constexpr double kInt8Tolerance =
    0x1p-6;  // where they are kept in 8 bits, steps of 2^-7 of the largest of a head

class CpuOp : public testing::TestWithParam<OpCase> {
 protected:
  HeadResult result(int threads, const std::string& kernels, units::WeightMode weights, int planes,
                    int kv_bits = 16) {
    units::CompileOptions options;
    options.kv_bits = kv_bits;
    options.threads = threads;
    options.kernels = kernels;
    options.weights = weights;
    options.activation_planes = planes;
    return run_program_on(unit_, GetParam().program, GetParam().weights, GetParam().calls, options);
  }
  units::cpu::CpuUnit unit_;
};

TEST_P(CpuOp, GivesWhatTorchGives) {
  const OpCase& golden = GetParam();
  const bool has_halves =
      std::any_of(golden.program.ops.begin(), golden.program.ops.end(),
                  [](const auto& op) { return op.kind == program::OpKind::kKvWrite; });
  for (const int kv_bits : {16, 8}) {
    const HeadResult actual = result(2, "", units::WeightMode::kKeep, 2, kv_bits);
    ASSERT_EQ(actual.values.size(), golden.expected.size());
    double largest = 1e-3, worst = 0;
    for (const float value : golden.expected) largest = std::max(largest, std::abs(double{value}));
    for (size_t i = 0; i < golden.expected.size(); ++i) {
      worst = std::max(worst, std::abs(double{actual.values[i]} - golden.expected[i]) / largest);
    }
    const double kv_tolerance = kv_bits == 8 ? kInt8Tolerance : kHalfTolerance;
    EXPECT_LE(worst, has_halves ? kv_tolerance : kFloatTolerance) << kv_bits;
    if (!has_halves || kv_bits == 16) {
      EXPECT_EQ(actual.indices, golden.expected_index);
    }
  }
}

TEST_P(CpuOp, GivesTheSameBitsOnEveryKernelSetWithAnyThreads) {
  const std::pair<units::WeightMode, int> arithmetics[] = {{units::WeightMode::kKeep, 2},
                                                           {units::WeightMode::kInt8, 2},
                                                           {units::WeightMode::kInt8, 1},
                                                           {units::WeightMode::kInt8Group64, 2}};
  for (const auto& [weights, planes] : arithmetics) {
    const HeadResult expected = result(1, "portable", weights, planes);
    for (const std::string& kernels : unit_.kernel_names()) {
      for (const int threads : {1, 2, 3}) {
        const HeadResult actual = result(threads, kernels, weights, planes);
        EXPECT_EQ(actual.values, expected.values) << kernels << ", " << threads << " threads";
        EXPECT_EQ(actual.indices, expected.indices) << kernels << ", " << threads << " threads";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuOp, testing::ValuesIn(golden_op_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace espalier::conformance
