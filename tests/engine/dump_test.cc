#include "espalier/engine/dump.h"

#include <gtest/gtest.h>

#include "espalier/base/dequantize.h"
#include "espalier/formats/safetensors.h"
#include "tests/engine/golden_models.h"
#include "tests/support/temporary_directory.h"

namespace espalier::engine {
namespace {

// A copy of a golden model whose weights are the dump of an engine.
std::string dump_beside_config(const Engine& engine, const std::string& name,
                               const TemporaryDirectory& directory) {
  const Status status = dump_weights(engine, directory / "model.safetensors");
  EXPECT_TRUE(status.ok()) << status.error().message();
  directory.write("config.json", read_text_file(golden_directory(name) + "/config.json").value());
  return directory.path();
}

std::vector<float> values_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.element_count()));
  dequantize(tensor, values);
  return values;
}

TEST(Dump, OfKeptWeightsEqualsTheCheckpoint) {
  for (const std::string name :
       {"mlx_llama_4bit", "mlx_lfm2_4bit", "llama_tied", "llama_biases", "lfm2_mixed"}) {
    const TemporaryDirectory directory;
    const auto engine = load_golden(name, {.compile = {.weights = units::WeightMode::kKeep}});
    const auto dumped =
        formats::open_checkpoint(dump_beside_config(*engine, name, directory)).value();
    const auto original = formats::open_checkpoint(golden_directory(name)).value();
    EXPECT_EQ(dumped.weights.all().size(), engine->tensors().size());
    for (const auto& [tensor, view] : dumped.weights.all()) {
      EXPECT_EQ(view.encoding, Encoding::kF32);
      EXPECT_EQ(view.shape, original.weights.all().at(tensor).shape);
      EXPECT_EQ(values_of(view), values_of(original.weights.all().at(tensor))) << tensor;
    }
  }
}

// Rows i and i + n of every head to 2i and 2i + 1, as convert_hf_to_gguf.py writes q and k of a
// Llama.
TensorView paired(const TensorView& view, int64_t heads,
                  std::vector<std::vector<std::byte>>& kept) {
  const auto row_count = static_cast<size_t>(view.shape[0]);
  const size_t row_bytes = view.bytes.size() / row_count;
  const size_t half = row_count / static_cast<size_t>(heads) / 2;
  std::vector<std::byte> bytes(view.bytes.size());
  for (size_t row = 0; row < row_count; ++row) {
    const size_t in_head = row % (2 * half);
    const size_t target = row - in_head + in_head % half * 2 + in_head / half;
    std::copy_n(view.bytes.begin() + static_cast<ptrdiff_t>(row * row_bytes), row_bytes,
                bytes.begin() + static_cast<ptrdiff_t>(target * row_bytes));
  }
  kept.push_back(std::move(bytes));
  return {view.encoding, view.shape, kept.back()};
}

TEST(Dump, PutsRowsThatStandInPairsWhereHuggingFaceHasThem) {
  for (const std::string name : {"llama_tied", "llama_biases"}) {
    formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory(name)).value();
    const Weights original = checkpoint.weights;
    std::map<std::string, TensorView> tensors = original.all();
    std::vector<std::vector<std::byte>> kept;
    for (auto& [tensor, view] : tensors) {
      const bool is_q = tensor.find("q_proj") != std::string::npos;
      if (!is_q && tensor.find("k_proj") == std::string::npos) continue;
      const char* heads = is_q ? "num_attention_heads" : "num_key_value_heads";
      view = paired(view, checkpoint.config[heads].get<int64_t>(), kept);
    }
    checkpoint.weights = Weights(std::move(tensors), {});
    checkpoint.config["rope_interleaved"] = true;
    const auto engine =
        Engine::load(std::move(checkpoint), {.compile = {.weights = units::WeightMode::kKeep}})
            .value();
    const TemporaryDirectory directory;
    const auto dumped = formats::open_safetensors(dump_beside_config(*engine, name, directory) +
                                                  "/model.safetensors")
                            .value();
    EXPECT_EQ(dumped.metadata.at("row_order"), "huggingface");
    for (const auto& [tensor, view] : dumped.tensors) {
      EXPECT_EQ(values_of(view), values_of(original.all().at(tensor))) << tensor;
    }
    // The engine on the pairs and one on the dump say the same.
    const auto again = Engine::load(directory.path(), {.unit = "reference"}).value();
    const std::vector<float> computed = make_session(*engine)->score(some_text(40))->logprobs;
    const std::vector<float> expected = make_session(*again)->score(some_text(40))->logprobs;
    for (size_t i = 0; i < computed.size(); ++i) EXPECT_NEAR(computed[i], expected[i], 0.02);
  }
}

TEST(Dump, OfInt8WeightsScoresOnTheReferenceUnitAsTheEngineDoes) {
  for (const std::string name : {"llama_tied", "lfm2_mixed"}) {
    const TemporaryDirectory directory;
    const auto engine = load_golden(name);
    const auto dumped =
        Engine::load(dump_beside_config(*engine, name, directory), {.unit = "reference"}).value();
    const std::vector<TokenId> text = some_text(60);
    const Score computed = make_session(*engine)->score(text).value();
    const Score reference = make_session(*dumped)->score(text).value();
    double difference = 0;
    for (size_t i = 0; i < computed.logprobs.size(); ++i) {
      difference += std::abs(computed.logprobs[i] - reference.logprobs[i]);
    }
    EXPECT_LT(difference / static_cast<double>(computed.logprobs.size()), 0.005) << name;
  }
}

TEST(Dump, LeavesNoFileWhereItIsStopped) {
  const TemporaryDirectory directory;
  const auto engine = load_golden("llama_tied");
  const std::string path = directory.write("model.safetensors", "old");
  const std::atomic<bool> stopped{true};
  const Status status = dump_weights(*engine, path, &stopped);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().what, "the dump was stopped");
  EXPECT_EQ(read_text_file(path).value(), "old");
  EXPECT_EQ(directory.file_count(), 1U);
}

TEST(Dump, LeavesNoFileWhereItCannotWrite) {
  const TemporaryDirectory directory;
  const auto engine = load_golden("llama_tied");
  EXPECT_FALSE(dump_weights(*engine, directory / "missing/model.safetensors").ok());
  EXPECT_EQ(directory.file_count(), 0U);
}

}  // namespace
}  // namespace espalier::engine
