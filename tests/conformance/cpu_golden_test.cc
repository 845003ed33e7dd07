// The cpu unit on the golden models: against transformers with the weights as they are stored,
// against the reference unit with the weights that int8 makes of them, and with == between its
// kernel sets.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "espalier/base/dequantize.h"
#include "espalier/units/cpu/cpu_unit.h"
#include "espalier/units/reference/reference_unit.h"
#include "tests/conformance/model_runner.h"

namespace espalier::conformance {
namespace {

constexpr int64_t kKvRows = 320;

// What a model makes of an error differs by orders of magnitude between random models, so the
// tolerance is measured on the model itself: how far the reference moves when every weight is off
// by up to 2^-11 of itself, as if it had been rounded to fp16. The cpu unit is off by that much in
// K and V (fp16) and by far less in activations (2^-16 of the largest of a block), so it must stay
// well below it: 0.1 to 0.36 of the mean and up to 0.63 of the worst were found.
constexpr double kNoise = 0x1p-11;
constexpr double kMeanMultiple = 0.5, kWorstMultiple = 1;

struct Difference {
  double mean = 0, worst = 0;
};

using Logprobs = std::vector<std::vector<double>>;  // of each id after the first, by sequence

Logprobs logprobs_of(ModelRunner& model, const GoldenModel& golden) {
  Logprobs result;
  const auto vocab = static_cast<size_t>(model.vocab());
  for (const GoldenSequence& sequence : golden.sequences) {
    const auto logits = model.forward(sequence.ids);
    std::vector<double>& row = result.emplace_back();
    for (size_t i = 0; i + 1 < sequence.ids.size(); ++i) {
      row.push_back(logprob(std::span(logits).subspan(i * vocab, vocab), sequence.ids[i + 1]));
    }
  }
  return result;
}

Difference difference(const Logprobs& actual, const Logprobs& expected) {
  Difference result;
  double count = 0;
  for (size_t s = 0; s < expected.size(); ++s) {
    for (size_t i = 0; i < expected[s].size(); ++i) {
      const double off = std::fabs(actual[s][i] - expected[s][i]);
      result.mean += off;
      result.worst = std::max(result.worst, off);
      ++count;
    }
  }
  result.mean /= count;
  return result;
}

// A checkpoint of fp32 tensors with the names and shapes of `stored`; `read` fills each or leaves
// it out.
template <typename Read>
Weights weights_of(const Weights& stored, Read read) {
  std::map<std::string, TensorView> tensors;
  std::vector<std::shared_ptr<const void>> owners;
  for (const auto& [name, view] : stored.all()) {
    auto data = std::make_shared<std::vector<float>>(static_cast<size_t>(view.element_count()));
    if (!read(name, view, *data)) continue;
    tensors[name] = {
        .encoding = Encoding::kF32, .shape = view.shape, .bytes = std::as_bytes(std::span(*data))};
    owners.push_back(std::move(data));
  }
  return Weights(std::move(tensors), std::move(owners));
}

// The checkpoint that `dump` would write: every tensor as the Executable computes with it.
Weights used_weights(const units::Executable& executable, const Weights& stored) {
  return weights_of(stored,
                    [&](const std::string& name, const TensorView& view, std::span<float> out) {
                      const int64_t index = executable.weight_index(name);
                      if (index >= 0) executable.read_weight_rows(index, 0, view.rows(), out);
                      return index >= 0;
                    });
}

Weights noisy_weights(const Weights& stored) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> noise(-kNoise, kNoise);
  return weights_of(stored, [&](const std::string&, const TensorView& view, std::span<float> out) {
    dequantize(view, out);
    for (float& x : out) x = static_cast<float>(x * (1 + noise(random)));
    return true;
  });
}

class CpuGolden : public testing::TestWithParam<std::string> {
 protected:
  ModelRunner runner(const GoldenModel& golden, int64_t window, units::WeightMode mode,
                     const std::string& kernels = "") {
    units::CompileOptions options;
    options.threads = 2;
    options.weights = mode;
    options.kernels = kernels;
    return {unit_, golden.model, golden.weights, window, kKvRows, options};
  }
  ModelRunner reference_runner(const GoldenModel& golden, const Weights& weights) {
    return {reference_unit_, golden.model, weights, 64, kKvRows, {}};
  }
  // Within the tolerance of this model on its weights.
  void expect_close(const GoldenModel& golden, const Logprobs& actual, const Logprobs& expected) {
    ModelRunner exact = reference_runner(golden, golden.weights);
    ModelRunner noisy = reference_runner(golden, noisy_weights(golden.weights));
    const Difference scale = difference(logprobs_of(noisy, golden), logprobs_of(exact, golden));
    const Difference off = difference(actual, expected);
    EXPECT_LE(off.mean, kMeanMultiple * scale.mean);
    EXPECT_LE(off.worst, kWorstMultiple * scale.worst);
    RecordProperty("difference", fmt::format("mean {:.1e}, worst {:.1e}; fp16 noise {:.1e}, {:.1e}",
                                             off.mean, off.worst, scale.mean, scale.worst));
  }

  units::cpu::CpuUnit unit_;
  units::reference::ReferenceUnit reference_unit_;
};

TEST_P(CpuGolden, KeptWeightsGiveTheLogProbabilitiesOfTransformers) {
  const GoldenModel golden = open_golden_model(GetParam());
  ModelRunner model = runner(golden, 64, units::WeightMode::kKeep);
  Logprobs expected;
  for (const GoldenSequence& sequence : golden.sequences) expected.push_back(sequence.logprobs);
  expect_close(golden, logprobs_of(model, golden), expected);
}

TEST_P(CpuGolden, Int8GivesTheLogProbabilitiesOfTheReferenceOnTheDumpedWeights) {
  GoldenModel golden = open_golden_model(GetParam());
  ModelRunner model = runner(golden, 64, units::WeightMode::kInt8);
  golden.weights = used_weights(model.executable(), golden.weights);
  ModelRunner reference = reference_runner(golden, golden.weights);
  expect_close(golden, logprobs_of(model, golden), logprobs_of(reference, golden));
}

TEST_P(CpuGolden, EveryKernelSetAndWindowGivesTheSameBits) {
  const GoldenModel golden = open_golden_model(GetParam());
  const auto& ids = golden.sequences.back().ids;
  for (const auto mode :
       {units::WeightMode::kInt8, units::WeightMode::kInt8Group64, units::WeightMode::kKeep}) {
    const auto expected = runner(golden, 1, mode, "portable").forward(ids);
    for (const std::string& kernels : unit_.kernel_names()) {
      for (const int64_t window : {7, 64}) {
        EXPECT_EQ(runner(golden, window, mode, kernels).forward(ids), expected)
            << kernels << ", window " << window;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, CpuGolden, testing::ValuesIn(golden_model_directories()),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).filename().string();
                         });

}  // namespace
}  // namespace espalier::conformance
