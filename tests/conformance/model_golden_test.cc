// Models on the reference unit against transformers (python/espalier_tools/golden/models.py), and
// the laws that make windows, trees and commits the same thing.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "espalier/units/reference/reference_unit.h"
#include "tests/conformance/model_runner.h"

namespace espalier::conformance {
namespace {

// fp32 rounding of the oracle; the reference itself sums in fp64.
constexpr double kTolerance = 1e-4;
constexpr int64_t kKvRows = 320;

class ModelGolden : public testing::TestWithParam<std::string> {
 protected:
  ModelRunner runner(const GoldenModel& golden, int64_t window_rows, int threads = 1) {
    units::CompileOptions options;
    options.threads = threads;
    return {unit_, golden.model, golden.weights, window_rows, kKvRows, options};
  }
  units::reference::ReferenceUnit unit_;
};

std::span<const float> row_of(const std::vector<float>& logits, int64_t row, int64_t vocab) {
  return std::span(logits).subspan(static_cast<size_t>(row * vocab), static_cast<size_t>(vocab));
}

TEST_P(ModelGolden, GivesTheLogProbabilitiesOfTransformersInAnyWindow) {
  const GoldenModel golden = open_golden_model(GetParam());
  double worst = 0;
  for (const int64_t window : {1, 7, 32, 64}) {
    ModelRunner model = runner(golden, window);
    for (const GoldenSequence& sequence : golden.sequences) {
      const auto logits = model.forward(sequence.ids);
      for (size_t i = 0; i < sequence.logprobs.size(); ++i) {
        const auto row = row_of(logits, static_cast<int64_t>(i), model.vocab());
        const double difference =
            std::abs(logprob(row, sequence.ids[i + 1]) - sequence.logprobs[i]);
        ASSERT_LE(difference, kTolerance) << "window " << window << ", place " << i;
        worst = std::max(worst, difference);
      }
    }
  }
  RecordProperty("worst_logprob_difference", fmt::format("{:.2e}", worst));
  if (std::getenv("ESPALIER_GOLDEN_MODELS") != nullptr) {
    fmt::print("{} worst {:.2e}\n", golden.name, worst);
  }
}

TEST_P(ModelGolden, GivesTheSameBitsForEveryWindowAndThreadCount) {
  const GoldenModel golden = open_golden_model(GetParam());
  const auto& ids = golden.sequences.back().ids;
  ModelRunner plain = runner(golden, 1);
  const auto expected = plain.forward(ids);
  for (const int64_t window : {7, 32, 64}) {
    for (const int threads : {1, 3}) {
      ModelRunner other = runner(golden, window, threads);
      ASSERT_EQ(other.forward(ids), expected) << "window " << window << ", threads " << threads;
    }
  }
}

// A random tree of `size` nodes; parents before children.
std::vector<int32_t> random_tree(std::mt19937& random, size_t size) {
  std::vector<int32_t> parents(size, -1);
  for (size_t r = 1; r < size; ++r) {
    parents[r] = static_cast<int32_t>(random() % (r + 1)) - 1;
  }
  return parents;
}

std::vector<int32_t> path_to(const std::vector<int32_t>& parents, int32_t row) {
  std::vector<int32_t> path;
  for (; row >= 0; row = parents[static_cast<size_t>(row)]) path.insert(path.begin(), row);
  return path;
}

std::vector<int32_t> pick(const std::vector<int32_t>& ids, const std::vector<int32_t>& path) {
  std::vector<int32_t> picked;
  for (const int32_t row : path) picked.push_back(ids[static_cast<size_t>(row)]);
  return picked;
}

TEST_P(ModelGolden, GivesEachRowOfATreeTheBitsOfPlainDecodingAlongItsPath) {
  const GoldenModel golden = open_golden_model(GetParam());
  ModelRunner tree = runner(golden, 24);
  ModelRunner plain = runner(golden, 1);
  std::mt19937 random(17);
  const auto vocab = static_cast<uint32_t>(golden.model.vocab_size);
  std::vector<int32_t> committed;
  for (int round = 0; round < 4; ++round) {
    const auto parents = random_tree(random, 1 + random() % 24);
    std::vector<int32_t> ids(parents.size());
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab);
    const auto logits = tree.run(ids, parents);
    for (size_t row = 0; row < ids.size(); ++row) {
      const auto path = path_to(parents, static_cast<int32_t>(row));
      auto sequence = committed;
      for (const int32_t id : pick(ids, path)) sequence.push_back(id);
      const auto expected = plain.forward(sequence);
      const auto last = row_of(expected, static_cast<int64_t>(sequence.size()) - 1, plain.vocab());
      const auto actual = row_of(logits, static_cast<int64_t>(row), tree.vocab());
      ASSERT_TRUE(std::equal(last.begin(), last.end(), actual.begin())) << "row " << row;
    }
    const auto path = path_to(parents, static_cast<int32_t>(random() % ids.size()));
    tree.commit(path);
    for (const int32_t id : pick(ids, path)) committed.push_back(id);
    ASSERT_EQ(tree.committed(), static_cast<int64_t>(committed.size()));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGolden, testing::ValuesIn(golden_model_directories()),
                         [](const auto& info) {
                           return std::filesystem::path(info.param).filename().string();
                         });

}  // namespace
}  // namespace espalier::conformance
