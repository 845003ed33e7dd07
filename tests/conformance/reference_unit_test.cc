// The reference unit's states, options and errors; its arithmetic is in op_golden_test.cc and
// model_golden_test.cc.
#include "espalier/units/reference/reference_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/conformance/model_runner.h"

namespace espalier::conformance {
namespace {

using testing::HasSubstr;

constexpr int64_t kWindow = 8;
constexpr int64_t kKvRows = 48;

class ReferenceUnit : public testing::Test {
 protected:
  static GoldenModel open(const std::string& name) {
    return open_golden_model(ESPALIER_SOURCE_DIR "/tests/golden/models/" + name);
  }
  ModelRunner runner(const GoldenModel& golden) {
    units::CompileOptions options;
    options.threads = 1;
    return {unit_, golden.model, golden.weights, kWindow, kKvRows, options};
  }
  // Logits of `ids` run as one chain after what is committed.
  static std::vector<float> next(ModelRunner& model, std::span<const int32_t> ids) {
    return model.run(ids, chain(ids.size()));
  }

  units::reference::ReferenceUnit unit_;
  const std::vector<int32_t> start_ = {5, 80, 3, 3, 61, 17, 44, 9, 120, 6, 31};
  const std::vector<int32_t> more_ = {12, 99, 7};
};

TEST_F(ReferenceUnit, ContinuesAnImportedStateWithTheSameBits) {
  for (const char* name : {"llama_tied", "lfm2_mixed"}) {
    const GoldenModel golden = open(name);
    ModelRunner model = runner(golden);
    model.forward(start_);
    const auto bytes = model.executable().export_state(model.state());
    const auto expected = next(model, more_);

    ModelRunner other = runner(golden);
    auto imported = other.executable().import_state(bytes);
    ASSERT_TRUE(imported.ok()) << imported.error().message();
    other.replace_state(std::move(imported).value());
    EXPECT_EQ(other.committed(), static_cast<int64_t>(start_.size()));
    EXPECT_EQ(next(other, more_), expected);
  }
}

TEST_F(ReferenceUnit, RefusesDamagedStates) {
  const GoldenModel golden = open("lfm2_mixed");
  ModelRunner model = runner(golden);
  model.forward(start_);
  const auto bytes = model.executable().export_state(model.state());
  for (size_t length = 0; length < bytes.size(); length += 1 + length / 16) {
    EXPECT_FALSE(model.executable().import_state(std::span(bytes).first(length)).ok()) << length;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(model.executable().import_state(longer).ok());

  const GoldenModel stranger = open("llama_tied");
  EXPECT_FALSE(runner(stranger).executable().import_state(bytes).ok());
}

TEST_F(ReferenceUnit, RefusesStatesWhoseHeaderLies) {
  const GoldenModel golden = open("llama_tied");
  ModelRunner model = runner(golden);
  model.forward(start_);
  const auto bytes = model.executable().export_state(model.state());
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return model.executable().import_state(std::as_bytes(std::span(changed))).ok();
  };
  EXPECT_TRUE(with("\"committed\":11", "\"committed\":11"));
  EXPECT_FALSE(with("\"committed\":11", "\"committed\":12"));
  EXPECT_FALSE(with("\"committed\":11", "\"committed\":-1"));
  EXPECT_FALSE(with("\"committed\":11", "\"committed\":9223372036854775807"));
  EXPECT_FALSE(with("\"kv_rows\":48", "\"kv_rows\":4611686018427387904"));
  EXPECT_FALSE(with("\"channels\":16", "\"channels\":17"));
  EXPECT_FALSE(with("key_value", "short_conv"));
}

TEST_F(ReferenceUnit, KeepsTheContentOfAResizedState) {
  const GoldenModel golden = open("lfm2_mixed");
  ModelRunner model = runner(golden);
  model.forward(start_);
  const auto expected = next(model, more_);
  ASSERT_TRUE(model.executable().resize_state(model.state(), 16).ok());
  EXPECT_EQ(model.state().kv_rows(), 16);
  EXPECT_EQ(next(model, more_), expected);
  EXPECT_FALSE(model.executable().resize_state(model.state(), 10).ok());  // 11 are committed
  EXPECT_FALSE(model.executable().resize_state(model.state(), kKvRows + 1).ok());
  EXPECT_EQ(next(model, more_), expected);
}

TEST_F(ReferenceUnit, ForgetsTheEndOfASequence) {
  const GoldenModel golden = open("llama_tied");
  ModelRunner model = runner(golden);
  model.forward(std::span(start_).first(6));
  const auto expected = next(model, more_);
  model.forward(start_);
  ASSERT_TRUE(model.executable().truncate_state(model.state(), 6).ok());
  EXPECT_EQ(model.committed(), 6);
  EXPECT_EQ(next(model, more_), expected);
  EXPECT_FALSE(model.executable().truncate_state(model.state(), 7).ok());
  EXPECT_FALSE(model.executable().truncate_state(model.state(), -1).ok());
}

TEST_F(ReferenceUnit, ForgetsAllOrNothingWhereThereAreConvolutions) {
  const GoldenModel golden = open("lfm2_mixed");
  ModelRunner model = runner(golden);
  const auto expected = model.forward(start_);
  EXPECT_THAT(model.executable().truncate_state(model.state(), 6).error().message(),
              HasSubstr("expected length 0, got 6"));
  ASSERT_TRUE(model.executable().truncate_state(model.state(), 0).ok());
  EXPECT_EQ(next(model, std::span(start_).first(1)),
            std::vector<float>(expected.begin(), expected.begin() + golden.model.vocab_size));
}

TEST_F(ReferenceUnit, FindsTheArgmaxOfItsLogits) {
  const GoldenModel golden = open("qwen3");
  ModelRunner model = runner(golden);
  const auto logits = next(model, more_);
  const int64_t vocab = golden.model.vocab_size;
  units::CompileOptions options;
  options.threads = 2;
  program::ProgramSet programs;
  programs.functions.push_back(golden.model.build({kWindow, kKvRows, 3, program::Head::kArgmax}));
  auto executable =
      unit_.compile(std::move(programs), golden.weights, golden.model.embedding_tensor, options);
  ASSERT_TRUE(executable.ok()) << executable.error().message();
  auto state = (*executable)->create_state(kKvRows);
  ASSERT_TRUE(state.ok());

  std::vector<float> embeddings(3 * static_cast<size_t>(golden.model.hidden_size));
  const int64_t embedding = (*executable)->weight_index(golden.model.embedding_tensor);
  for (size_t r = 0; r < 3; ++r) {
    (*executable)
        ->read_weight_rows(
            embedding, more_[r], 1,
            std::span(embeddings).subspan(r * embeddings.size() / 3, embeddings.size() / 3));
  }
  const std::vector<int32_t> rows = {0, 1, 2};
  std::vector<float> values(3);
  std::vector<int32_t> indices(3);
  (*executable)->run(0, {3, embeddings, rows, chain(3), rows}, **state, {values, indices, {}});
  for (int64_t r = 0; r < 3; ++r) {
    const auto row =
        std::span(logits).subspan(static_cast<size_t>(r * vocab), static_cast<size_t>(vocab));
    const auto best = std::max_element(row.begin(), row.end());
    EXPECT_EQ(indices[static_cast<size_t>(r)], best - row.begin());
    EXPECT_EQ(values[static_cast<size_t>(r)], *best);
  }
}

TEST_F(ReferenceUnit, ComputesWithTheWeightsOfTheCheckpointInEveryMode) {
  const GoldenModel golden = open("qwen2");
  ModelRunner model = runner(golden);  // WeightMode::kInt8 is the default
  const std::string name = "model.layers.1.mlp.up_proj.weight";
  const int64_t index = model.executable().weight_index(name);
  ASSERT_GE(index, 0);
  const TensorView view = *golden.weights.get(name);
  std::vector<float> row(static_cast<size_t>(view.columns()));
  model.executable().read_weight_rows(index, 3, 1, row);
  for (size_t c = 0; c < row.size(); ++c) {
    uint16_t half = 0;
    std::memcpy(&half, view.row(3).data() + 2 * c, 2);
    EXPECT_EQ(row[c], half_to_float(half));
  }
  EXPECT_EQ(model.executable().weight_index("no.such.tensor"), -1);
}

TEST_F(ReferenceUnit, SaysWhatItCannotCompile) {
  const GoldenModel golden = open("qwen2");
  const auto compile = [&](const units::CompileOptions& options, const Weights& weights) {
    program::ProgramSet programs;
    programs.functions.push_back(golden.model.build({}));
    const auto result =
        unit_.compile(std::move(programs), weights, golden.model.embedding_tensor, options);
    return result.ok() ? std::string("ok") : result.error().message();
  };
  units::CompileOptions kernels;
  kernels.kernels = "avx512vnni";
  EXPECT_THAT(compile(kernels, golden.weights), HasSubstr("expected naive, got avx512vnni"));
  units::CompileOptions threads;
  threads.threads = -1;
  EXPECT_THAT(compile(threads, golden.weights), HasSubstr("number of threads is out of range"));
  EXPECT_THAT(compile({}, Weights{}), HasSubstr("is missing"));
  EXPECT_THAT(unit_.compile({}, golden.weights, "x", {}).error().message(),
              HasSubstr("[set.empty]"));
}

TEST_F(ReferenceUnit, RefusesBucketsThatNoFunctionHas) {
  const GoldenModel golden = open("qwen2");
  ModelRunner model = runner(golden);
  EXPECT_FALSE(model.executable().create_state(0).ok());
  EXPECT_FALSE(model.executable().create_state(kKvRows + 1).ok());
  EXPECT_FALSE(model.executable().create_state(INT64_MAX).ok());
}

TEST_F(ReferenceUnit, DiesOfAPathThatIsNone) {
  const GoldenModel golden = open("qwen2");
  ModelRunner model = runner(golden);
  model.run(more_, std::vector<int32_t>{-1, -1, 0});
  EXPECT_DEATH(model.commit(std::vector<int32_t>{0, 1}), "CHECK");
  EXPECT_DEATH(model.commit(std::vector<int32_t>{2}), "CHECK");
  EXPECT_DEATH(model.commit(std::vector<int32_t>{0, 3}), "CHECK");
  model.commit(std::vector<int32_t>{0, 2});
  EXPECT_EQ(model.committed(), 2);
  EXPECT_DEATH(model.commit(std::vector<int32_t>{0}), "CHECK");  // once for each run
}

}  // namespace
}  // namespace espalier::conformance
