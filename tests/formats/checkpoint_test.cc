#include "espalier/formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "espalier/base/mapped_file.h"
#include "espalier/formats/safetensors_writer.h"
#include "tests/formats/gguf_builder.h"
#include "tests/support/temporary_directory.h"

namespace espalier::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/formats/";
constexpr auto kTokenizer = R"({
  "added_tokens": [{"id": 2, "content": "<s>", "special": true}],
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<s>": 2}, "merges": []}})";

// A directory with as little in it as a model needs; tests add and replace files.
class ModelDirectory : public testing::Test {
 protected:
  ModelDirectory() {
    write("config.json", R"({"model_type": "llama", "hidden_size": 4})");
    write_weights({"model.embed_tokens.weight", "model.norm.weight"});
  }
  void write(const std::string& name, const std::string& content) {
    directory_.write(name, content);
  }
  void write_weights(const std::vector<std::string>& names) {
    std::vector<TensorDeclaration> tensors;
    for (const std::string& name : names) tensors.push_back({name, {4}});
    auto writer = SafetensorsWriter::create(directory_ / "model.safetensors", tensors, {});
    ASSERT_TRUE(writer->append(std::vector<std::byte>(names.size() * 16)).ok());
    ASSERT_TRUE(writer->finish().ok());
  }
  Checkpoint open() {
    auto checkpoint = open_checkpoint(directory_.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    return checkpoint.ok() ? std::move(checkpoint).value() : Checkpoint{};
  }
  std::string problem(const std::string& name = "") {
    const auto checkpoint = open_checkpoint(directory_.path() + "/" + name);
    return checkpoint.ok() ? "" : checkpoint.error().message();
  }
  std::vector<std::string> tensor_names() {
    std::vector<std::string> names;
    const Checkpoint checkpoint = open();
    for (const auto& [name, view] : checkpoint.weights.all()) names.push_back(name);
    return names;
  }
  TemporaryDirectory directory_;
};

TEST_F(ModelDirectory, NeedsAConfigurationAndWeightsOnly) {
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.format, "safetensors");
  EXPECT_EQ(checkpoint.config["model_type"], "llama");
  EXPECT_TRUE(checkpoint.generation_config.is_null());
  EXPECT_FALSE(checkpoint.tokenizer.has_value());
  EXPECT_FALSE(checkpoint.chat_template.has_value());
  EXPECT_EQ(checkpoint.bos_token, "");
  EXPECT_EQ(checkpoint.name, std::filesystem::path(directory_.path()).filename());
}

TEST_F(ModelDirectory, OpensByTheNameOfItsWeightsToo) {
  const auto checkpoint = open_checkpoint(directory_ / "model.safetensors");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->config["hidden_size"], 4);
  EXPECT_EQ(
      open_checkpoint(kGolden + "checkpoint/model.safetensors.index.json")->weights.all().size(),
      21u);
  EXPECT_EQ(open_checkpoint(kGolden + "checkpoint")->weights.all().size(), 21u);
}

TEST_F(ModelDirectory, KnowsAllFilesThatItWasReadFrom) {
  write("tokenizer_config.json", "{}");
  EXPECT_THAT(open().files,
              UnorderedElementsAre(directory_ / "model.safetensors", directory_ / "config.json",
                                   directory_ / "tokenizer_config.json"));
  std::vector<std::string> sharded;
  const Checkpoint checkpoint = open_checkpoint(kGolden + "checkpoint").value();
  for (const std::string& file : checkpoint.files) {
    if (file.find("model") != std::string::npos) sharded.push_back(file);
  }
  EXPECT_EQ(sharded.size(), 7u);  // the index and six shards
}

TEST_F(ModelDirectory, SaysWhatIsMissing) {
  EXPECT_THAT(problem("absent"), HasSubstr("there is no model at"));
  EXPECT_THAT(problem("config.json"), HasSubstr("a file of another kind"));
  std::filesystem::remove(directory_ / "model.safetensors");
  EXPECT_THAT(problem(), HasSubstr("has no weights"));
  std::filesystem::remove(directory_ / "config.json");
  EXPECT_THAT(problem(), HasSubstr("expected config.json in it"));
}

TEST_F(ModelDirectory, TellsAShardFromAModel) {
  const auto shard = open_checkpoint(kGolden + "checkpoint/model-00002-of-00006.safetensors");
  ASSERT_FALSE(shard.ok());
  EXPECT_THAT(shard.error().message(), HasSubstr("is one file of several"));
  EXPECT_THAT(shard.error().message(), HasSubstr("got file 00002 of 00006. Name the directory"));
  std::filesystem::rename(directory_ / "model.safetensors",
                          directory_ / "model-00001-of-00001.safetensors");
  EXPECT_EQ(problem("model-00001-of-00001.safetensors"), "");
}

TEST_F(ModelDirectory, SaysThatAFileAloneLacksItsConfiguration) {
  std::filesystem::remove(directory_ / "config.json");
  EXPECT_THAT(problem("model.safetensors"),
              HasSubstr("model.safetensors' is only the weights of a model: expected config.json "
                        "beside it"));
}

TEST_F(ModelDirectory, SaysWhyItCannotBeLookedInto) {
  std::filesystem::remove(directory_ / "config.json");
  std::filesystem::create_symlink("config.json", directory_ / "config.json");  // to itself
  EXPECT_THAT(problem(), HasSubstr("Too many levels of symbolic links"));
  if (::geteuid() == 0) return;  // who may look into everything
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::none);
  EXPECT_THAT(problem(), HasSubstr("Permission denied"));
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::owner_all);
}

TEST_F(ModelDirectory, RefusesBrokenFilesByName) {
  for (const char* name :
       {"generation_config.json", "tokenizer_config.json", "special_tokens_map.json",
        "tokenizer.json", "chat_template.json", "config.json"}) {
    const std::string path = directory_ / name;
    const bool was_there = std::filesystem::exists(path);
    for (const char* content : {"", "{", "[]", "3", "\"\xff\""}) {
      write(name, content);
      EXPECT_THAT(problem(), HasSubstr(name)) << content;
    }
    if (!was_there) std::filesystem::remove(path);
  }
  write("config.json", R"({"hidden_size": 4})");
  write("chat_template.jinja", "\xff");
  EXPECT_THAT(problem(), HasSubstr("chat_template.jinja"));
}

TEST_F(ModelDirectory, RefusesQuantisedWeightsOfOtherTools) {
  write("config.json", R"({"hidden_size": 4, "quantization_config": {"quant_method": "gptq"}})");
  EXPECT_THAT(problem(), HasSubstr("quantised weights"));
  write("config.json", R"({"hidden_size": 4, "quantization_config": null})");
  EXPECT_EQ(problem(), "");
}

// Whichever of the two configurations of a multimodal model says it.
TEST_F(ModelDirectory, RefusesQuantisedWeightsOfMultimodalModels) {
  for (const char* key : {"quantization_config", "quantization"}) {
    for (const bool inside : {false, true}) {
      Json config = {{"text_config", {{"hidden_size", 4}}}};
      (inside ? config["text_config"] : config)[key] = {{"quant_method", "fp8"}};
      write("config.json", config.dump());
      EXPECT_THAT(problem(), HasSubstr("quantised weights")) << config;
    }
  }
}

TEST_F(ModelDirectory, RefusesFp8WeightsWithScales) {
  for (const std::string scale : {"a.weight_scale_inv", "a.weight_scale", "a.scale_weight", ""}) {
    std::vector<TensorDeclaration> tensors = {{"a.weight", {2, 4}, Encoding::kF8E4M3}};
    if (!scale.empty()) tensors.push_back({scale, {1}});
    auto writer = SafetensorsWriter::create(directory_ / "model.safetensors", tensors, {}).value();
    ASSERT_TRUE(writer.append(std::vector<std::byte>(scale.empty() ? 8 : 12)).ok());
    ASSERT_TRUE(writer.finish().ok());
    if (scale.empty()) {
      EXPECT_EQ(problem(), "");
    } else {
      EXPECT_THAT(problem(), AllOf(HasSubstr("quantised weights"), HasSubstr(scale)));
    }
  }
}

TEST_F(ModelDirectory, IsNamedAfterItsFolderHoweverThatIsWritten) {
  const std::string name = std::filesystem::path(directory_.path()).filename();
  for (const char* path : {"", "/", "/.", "/./", "//", "/model.safetensors"}) {
    const auto checkpoint = open_checkpoint(directory_.path() + path);
    ASSERT_TRUE(checkpoint.ok()) << path << checkpoint.error().message();
    EXPECT_EQ(checkpoint->name, name) << path;
  }
  const auto old = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  for (const char* path : {".", "./", "model.safetensors", "./model.safetensors"}) {
    EXPECT_EQ(open_checkpoint(path)->name, name) << path;
  }
  std::filesystem::current_path(old);
}

TEST_F(ModelDirectory, WeightsAreKnownByTheirFirstBytes) {
  std::filesystem::rename(directory_ / "model.safetensors", directory_ / "weights.bin");
  EXPECT_EQ(open_checkpoint(directory_ / "weights.bin")->format, "safetensors");
  std::filesystem::rename(directory_ / "weights.bin", directory_ / "weights.gguf");
  EXPECT_EQ(open_checkpoint(directory_ / "weights.gguf")->format, "safetensors");
  // Where the bytes say nothing the name does, so that the reader can say what is wrong.
  EXPECT_THAT(problem("short.gguf"), HasSubstr("there is no model"));
  directory_.write("short.gguf", "GG");
  EXPECT_THAT(problem("short.gguf"), HasSubstr("short.gguf"));
  directory_.write("short.safetensors", "{");
  EXPECT_THAT(problem("short.safetensors"), HasSubstr("short.safetensors"));
}

TEST_F(ModelDirectory, StripsWhatMultimodalExportsPutAroundTextTensors) {
  write_weights(
      {"language_model.model.embed_tokens.weight", "language_model.lm_head.weight", "vision.a"});
  EXPECT_THAT(tensor_names(),
              ElementsAre("lm_head.weight", "model.embed_tokens.weight", "vision.a"));
  write_weights(
      {"model.language_model.embed_tokens.weight", "lm_head.weight", "model.vision_tower.a"});
  EXPECT_THAT(tensor_names(),
              ElementsAre("lm_head.weight", "model.embed_tokens.weight", "model.vision_tower.a"));
  write_weights({"model.language_model.model.norm.weight", "model.language_model.lm_head.weight"});
  EXPECT_THAT(tensor_names(), ElementsAre("lm_head.weight", "model.norm.weight"));
  write_weights({"language_model.lm_head.weight", "lm_head.weight"});
  EXPECT_THAT(problem(), HasSubstr("one tensor for 'lm_head.weight'"));
}

TEST_F(ModelDirectory, ATextConfigurationInsideIsTheConfiguration) {
  write("config.json",
        R"({"model_type": "lfm2_vl", "tie_word_embeddings": true, "vision_config": {},
                           "eos_token_id": 7, "text_config": {"model_type": "lfm2", "hidden_size": 8, "eos_token_id": 2}})");
  EXPECT_EQ(
      open().config,
      Json::parse(
          R"({"model_type": "lfm2", "hidden_size": 8, "eos_token_id": 2, "tie_word_embeddings": true})"));
}

TEST_F(ModelDirectory, TokensAreTextsOrObjects) {
  write_weights({"a"});  // without an embedding
  write("tokenizer.json", kTokenizer);
  write("tokenizer_config.json",
        R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": null})");
  write("special_tokens_map.json", R"({"bos_token": "wrong", "eos_token": "b"})");
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.bos_token, "<s>");
  EXPECT_EQ(checkpoint.eos_token, "b");
  ASSERT_TRUE(checkpoint.tokenizer.has_value());
}

TEST_F(ModelDirectory, ATemplateOfItsOwnWins) {
  write("chat_template.json", R"({"chat_template": "third"})");
  EXPECT_EQ(open().chat_template, "third");
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "second"}]})");
  EXPECT_EQ(open().chat_template, "second");
  write("tokenizer_config.json", R"({"chat_template": "second, alone"})");
  EXPECT_EQ(open().chat_template, "second, alone");
  write("chat_template.jinja", "first {{ größe }}\n");
  EXPECT_EQ(open().chat_template, "first {{ größe }}\n");
}

TEST_F(ModelDirectory, AListWithoutADefaultTemplateHasNone) {
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "t"}, 3, {"name": "default"}]})");
  EXPECT_EQ(open().chat_template, std::nullopt);
}

class GgufFile : public testing::Test {
 protected:
  static GgufBuilder llama() {
    return GgufBuilder().text("general.architecture", "llama").floats("token_embd.weight", {3, 4});
  }
  Result<Checkpoint> open(const GgufBuilder& builder) {
    return open_checkpoint(directory_.write("model.bin", builder.build()));  // known by its content
  }
  TemporaryDirectory directory_;
};

TEST_F(GgufFile, HasTheNamesAndShapesOfTransformers) {
  const auto expected =
      parse_json(*read_text_file(kGolden + "architectures/expected.json"), "expected.json");
  for (const auto& [architecture, model] : expected->items()) {
    const auto checkpoint = open_checkpoint(kGolden + "architectures/" + architecture + ".gguf");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    const auto& tensors = model["tensors"];
    EXPECT_EQ(checkpoint->weights.all().size(), tensors.size());
    for (const auto& [name, tensor] : tensors.items()) {
      EXPECT_TRUE(checkpoint->weights.get(name, tensor["shape"].get<std::vector<int64_t>>()).ok())
          << name;
    }
  }
}

TEST_F(GgufFile, CarriesItsTokenizerAndTemplate) {
  const auto checkpoint = open(
      llama()
          .text("general.name", "Some Model")
          .text("tokenizer.ggml.model", "gpt2")
          .text("tokenizer.ggml.pre", "smollm")
          .texts("tokenizer.ggml.tokens", {"a", "b", "<s>", "</s>"})
          .texts("tokenizer.ggml.merges", {"a b"})
          .array("tokenizer.ggml.token_type", GgufType::kInt32, std::vector<int32_t>{1, 1, 3, 3})
          .u32("tokenizer.ggml.bos_token_id", 2)
          .u32("tokenizer.ggml.eos_token_id", 3)
          .text("tokenizer.chat_template", "{{ messages }}"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->format, "gguf");
  EXPECT_EQ(checkpoint->name, "Some Model");
  EXPECT_EQ(checkpoint->chat_template, "{{ messages }}");
  EXPECT_EQ(checkpoint->generation_config["eos_token_id"], 3);
  ASSERT_TRUE(checkpoint->tokenizer.has_value());
  EXPECT_THAT(checkpoint->tokenizer->tokens, ElementsAre("a", "b", "<s>", "</s>"));
  EXPECT_EQ(checkpoint->bos_token, "<s>");
  EXPECT_EQ(checkpoint->eos_token, "</s>");
}

TEST_F(GgufFile, IsKnownByItsFirstBytesWhateverItsName) {
  for (const char* name : {"model.safetensors", "model", "model.gguf"}) {
    const auto checkpoint = open_checkpoint(directory_.write(name, llama().build()));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    EXPECT_EQ(checkpoint->format, "gguf");
  }
}

TEST_F(GgufFile, RefusesMoreTokensThanItsEmbeddingHasRows) {
  const auto with_tokens = [&](size_t count) {
    std::vector<std::string> tokens;
    for (size_t i = 0; i < count; ++i) tokens.push_back(std::string(i + 1, 'a'));
    return open(llama()
                    .text("tokenizer.ggml.model", "gpt2")
                    .text("tokenizer.ggml.pre", "smollm")
                    .texts("tokenizer.ggml.tokens", tokens)
                    .texts("tokenizer.ggml.merges", {}));
  };
  EXPECT_TRUE(with_tokens(3).ok());  // a row more is padding
  EXPECT_TRUE(with_tokens(4).ok());
  ASSERT_FALSE(with_tokens(5).ok());
  EXPECT_THAT(with_tokens(5).error().message(),
              HasSubstr("the tokenizer has tokens that the weights lack: expected at most 4"));
}

TEST_F(GgufFile, NeedsNoTokenizer) {
  const auto checkpoint = open(llama());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  EXPECT_FALSE(checkpoint->tokenizer.has_value());
  EXPECT_EQ(checkpoint->name, "model");
}

TEST_F(GgufFile, OfAnUnknownArchitectureKeepsItsNames) {
  const auto checkpoint = open(GgufBuilder()
                                   .text("general.architecture", "mamba")
                                   .u32("mamba.block_count", 2)
                                   .floats("output.weight", {4}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  EXPECT_EQ(checkpoint->config, Json::parse(R"({"model_type": "mamba", "num_hidden_layers": 2})"));
  EXPECT_TRUE(checkpoint->weights.contains("output.weight"));
}

TEST_F(GgufFile, KeepsTheFrequenciesOfLlama3) {
  EXPECT_TRUE(
      open(llama().floats("rope_freqs.weight", {2}))->weights.contains("rope_freqs.weight"));
}

TEST_F(GgufFile, RefusesTwoTensorsThatMeanTheSame) {
  const auto both = open(llama().floats("model.embed_tokens.weight", {4, 3}));
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().message(), HasSubstr("one tensor for 'model.embed_tokens.weight'"));
}

TEST_F(GgufFile, WithoutAnArchitectureIsAnError) {
  const auto checkpoint = open(GgufBuilder().floats("a", {1}));
  ASSERT_FALSE(checkpoint.ok());
  EXPECT_THAT(checkpoint.error().message(), HasSubstr("general.architecture"));
  EXPECT_THAT(checkpoint.error().message(), HasSubstr("model.bin"));
}

}  // namespace
}  // namespace espalier::formats
