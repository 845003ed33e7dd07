#include "espalier/engine/dump.h"

#include <gtest/gtest.h>

#include "espalier/base/dequantize.h"
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
  dequantize(tensor.encoding, tensor.bytes, values);
  return values;
}

TEST(Dump, OfKeptWeightsEqualsTheCheckpoint) {
  for (const std::string name : {"llama_tied", "llama_biases", "lfm2_mixed"}) {
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
