// Affine weights of MLX on the cpu unit: its products against MLX's quantized_matmul, fp32 in both.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "espalier/formats/checkpoint.h"
#include "espalier/formats/safetensors.h"
#include "espalier/units/cpu/kernels.h"
#include "tests/conformance/value_or_die.h"

namespace espalier::conformance {
namespace {

using units::cpu::Activations;
using units::cpu::FloatMode;
using units::cpu::KernelSet;
using units::cpu::PackedLinear;

std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.element_count()));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

// Two planes round an activation to 2^-16 of the largest of a block; its error is that of a random walk over the columns,
// a few 2^-16 of a product of vectors of order 1.
constexpr float kTolerance = 1e-4f;

TEST(AffineGolden, EveryKernelSetGivesTheProductsOfMlx) {
  const std::string folder = ESPALIER_SOURCE_DIR "/tests/golden/formats/affine";
  const auto checkpoint = value_or_die(formats::open_checkpoint(folder));
  const auto expected = value_or_die(formats::open_safetensors(folder + "/expected.safetensors"));
  const std::vector<float> x = floats_of(expected.tensors.at("x"));
  for (const auto& [name, view] : checkpoint.weights.all()) {
    const std::string module = name.substr(0, name.size() - std::strlen(".weight"));
    const std::vector<float> products = floats_of(expected.tensors.at(module + ".product"));
    const PackedLinear weights =
        value_or_die(PackedLinear::pack(view, 0, view.rows(), FloatMode::kInt8Channel));
    const int64_t rows = static_cast<int64_t>(x.size()) / view.columns();
    for (const KernelSet* set : units::cpu::all_kernel_sets()) {
      if (!set->supported()) continue;
      auto activations = value_or_die(Activations::create(rows, view.columns(), 2));
      set->quantize_rows(x.data(), view.columns(), 0, rows, activations);
      std::vector<float> y(products.size());
      set->linear(weights, activations, rows, 0, weights.panel_count(), y.data(), view.rows());
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], products[i], kTolerance) << name << " " << set->name;
    }
  }
}

}  // namespace
}  // namespace espalier::conformance
