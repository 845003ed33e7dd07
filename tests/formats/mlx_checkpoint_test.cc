#include "espalier/formats/mlx_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "espalier/base/dequantize.h"
#include "espalier/formats/checkpoint.h"
#include "espalier/formats/safetensors.h"
#include "espalier/formats/safetensors_writer.h"
#include "tests/formats/hostile_bytes.h"
#include "tests/support/temporary_directory.h"

namespace espalier::formats {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/";

TEST(MlxCheckpoint, ReadsEveryAffineEncodingAsMlxDoes) {
  const Checkpoint checkpoint = open_checkpoint(kGolden + "formats/affine").value();
  const Safetensors expected =
      open_safetensors(kGolden + "formats/affine/expected.safetensors").value();
  ASSERT_EQ(checkpoint.weights.all().size(), 18u);
  std::set<Encoding> seen;
  for (const auto& [name, view] : checkpoint.weights.all()) {
    seen.insert(view.encoding);
    const std::string module = name.substr(0, name.size() - std::strlen(".weight"));
    const TensorView& golden = expected.tensors.at(module + ".fp32");
    EXPECT_EQ(view.shape, golden.shape) << name;
    std::vector<float> values(static_cast<size_t>(view.element_count()));
    dequantize(view, values);
    EXPECT_EQ(std::memcmp(values.data(), golden.bytes.data(), golden.bytes.size()), 0) << name;
  }
  EXPECT_EQ(seen.size(), 6u);
}

TEST(MlxCheckpoint, ReadsAModelAsMlxLmWritesIt) {
  const auto llama = open_checkpoint(kGolden + "models/mlx_llama_4bit").value();
  const auto encoding = [&](const std::string& name) {
    return std::string(name_of(llama.weights.get(name).value().encoding));
  };
  EXPECT_EQ(encoding("model.embed_tokens.weight"), "affine4g32");
  EXPECT_EQ(encoding("lm_head.weight"), "affine4g32");
  EXPECT_EQ(encoding("model.layers.0.self_attn.v_proj.weight"), "affine8g64");
  EXPECT_EQ(encoding("model.layers.0.mlp.up_proj.weight"), "f16");
  EXPECT_EQ(encoding("model.norm.weight"), "f16");
  EXPECT_FALSE(llama.weights.contains("lm_head.scales"));
  EXPECT_FALSE(llama.weights.contains("lm_head.biases"));
  const auto lfm2 = open_checkpoint(kGolden + "models/mlx_lfm2_4bit").value();
  EXPECT_EQ(lfm2.weights.get("model.layers.0.conv.conv.weight").value().shape,
            (std::vector<int64_t>{64, 1, 3}));
}

// A module "m" of [2, 64] in 4 bits by groups of 32, and a norm beside it; tests break one thing.
class MlxDirectory : public testing::Test {
 protected:
  MlxDirectory() {
    quantization_ = {{"group_size", 32}, {"bits", 4}};
    tensors_ = {{"m.weight", {2, 8}, Encoding::kU32},
                {"m.scales", {2, 2}, Encoding::kBF16},
                {"m.biases", {2, 2}, Encoding::kBF16},
                {"norm.weight", {64}, Encoding::kF16}};
  }
  std::string problem() {
    write();
    const auto checkpoint = open_checkpoint(directory_.path());
    if (!checkpoint.ok()) {
      EXPECT_FALSE(checkpoint.error().fix.empty());
      return checkpoint.error().message();
    }
    expect_sound(checkpoint->weights.all());
    return "";
  }
  void write() {
    Json config = {{"model_type", "llama"}, {"hidden_size", 64}};
    if (!quantization_.is_null()) config["quantization"] = quantization_;
    directory_.write("config.json", config.dump());
    int64_t bytes = 0;
    for (const TensorDeclaration& tensor : tensors_) {
      int64_t elements = 1;
      for (const int64_t extent : tensor.shape) elements *= extent;
      bytes += elements * encoding_info(tensor.encoding).block_bytes;
    }
    auto writer = SafetensorsWriter::create(directory_ / "model.safetensors", tensors_, {}).value();
    ASSERT_TRUE(writer.append(std::vector<std::byte>(static_cast<size_t>(bytes))).ok());
    ASSERT_TRUE(writer.finish().ok());
  }
  TensorDeclaration& tensor(const std::string& name) {
    return *std::ranges::find(tensors_, name, &TensorDeclaration::name);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors_, [&](const TensorDeclaration& t) { return t.name == name; });
  }

  Json quantization_;
  std::vector<TensorDeclaration> tensors_;
  TemporaryDirectory directory_;
};

TEST_F(MlxDirectory, IsOneTensorAModule) {
  ASSERT_EQ(problem(), "");
  const Checkpoint checkpoint = open_checkpoint(directory_.path()).value();
  EXPECT_EQ(checkpoint.weights.all().size(), 2u);
  const TensorView view = checkpoint.weights.get("m.weight").value();
  EXPECT_EQ(view.encoding, Encoding::kAffine4G32);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(view.beside.encoding, Encoding::kBF16);
  EXPECT_EQ(view.byte_count(), 64 + 8 + 8);
}

TEST_F(MlxDirectory, ASettingOfAModuleWins) {
  tensors_.push_back({"n.weight", {2, 32}, Encoding::kU32});
  tensors_.push_back({"n.scales", {2, 1}, Encoding::kF32});
  tensors_.push_back({"n.biases", {2, 1}, Encoding::kF32});
  quantization_["n"] = {{"group_size", 128}, {"bits", 8}, {"mode", "affine"}};
  quantization_["m"] = true;
  quantization_["norm"] = false;
  quantization_["vision"] = {{"group_size", 16}, {"bits", 3}};  // of no module here
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(open_checkpoint(directory_.path())->weights.get("n.weight")->encoding,
            Encoding::kAffine8G128);
}

TEST_F(MlxDirectory, RefusesOtherQuantisations) {
  for (const int bits : {0, 2, 3, 5, 6, 16, -4}) {
    quantization_["bits"] = bits;
    EXPECT_THAT(problem(), HasSubstr(fmt::format("mode affine, {} bits, groups of 32", bits)));
  }
  quantization_["bits"] = 4;
  for (const int group : {0, 16, 48, 256}) {
    quantization_["group_size"] = group;
    EXPECT_THAT(problem(), HasSubstr(fmt::format("4 bits, groups of {}", group)));
  }
  quantization_["group_size"] = 32;
  for (const char* mode : {"mxfp4", "nvfp4", "mxfp8", "Affine", ""}) {
    quantization_["mode"] = mode;
    EXPECT_THAT(problem(), HasSubstr(fmt::format("got mode {}, 4 bits", mode)));
  }
  quantization_["mode"] = "affine";
  quantization_["global_scale"] = true;
  EXPECT_THAT(problem(), HasSubstr("a global scale"));
}

TEST_F(MlxDirectory, RefusesSettingsThatAreNone) {
  quantization_["group_size"] = "64";
  EXPECT_THAT(problem(), HasSubstr("group_size"));
  quantization_ = {{"bits", 4}};
  EXPECT_THAT(problem(), HasSubstr("group_size"));
  quantization_ = {{"group_size", 32}};
  EXPECT_THAT(problem(), HasSubstr("quantised weights"));
  quantization_ = 4;
  EXPECT_THAT(problem(), HasSubstr("quantised weights"));
  quantization_ = {{"group_size", 32}, {"bits", 4}, {"m", 8}};
  EXPECT_THAT(problem(), AllOf(HasSubstr("'quantization' of 'm'"), HasSubstr("got number")));
  quantization_["m"] = {{"bits", 8}};
  EXPECT_THAT(problem(), AllOf(HasSubstr("'quantization' of 'm'"), HasSubstr("group_size")));
  quantization_["m"] = {{"bits", 6}, {"group_size", 64}};
  EXPECT_THAT(problem(), AllOf(HasSubstr("'quantization' of 'm'"), HasSubstr("6 bits")));
}

TEST_F(MlxDirectory, RefusesPartsWithoutTheOthers) {
  const auto whole = tensors_;
  remove("m.biases");
  EXPECT_THAT(problem(), HasSubstr("tensor 'm.biases' is missing"));
  tensors_ = whole;
  remove("m.weight");
  EXPECT_THAT(problem(), HasSubstr("tensor 'm.weight' is missing"));
  tensors_ = whole;
  remove("m.scales");
  EXPECT_THAT(problem(), HasSubstr("'m.biases' has no scales"));
  remove("m.biases");
  EXPECT_THAT(problem(), HasSubstr("'m.weight' has no scales"));
  tensors_ = whole;
  quantization_ = nullptr;
  EXPECT_THAT(problem(), HasSubstr("expected 'quantization' in config.json"));
}

TEST_F(MlxDirectory, RefusesSettingsThatTheTensorsContradict) {
  quantization_["m"] = false;
  EXPECT_THAT(problem(), HasSubstr("'m' has scales"));
  quantization_["m"] = true;
  quantization_["bits"] = 8;
  EXPECT_THAT(problem(), AllOf(HasSubstr("do not fit together"), HasSubstr("columns * 8 / 32")));
  quantization_["bits"] = 4;
  quantization_["group_size"] = 64;
  EXPECT_THAT(problem(), HasSubstr("columns / 64"));
}

TEST_F(MlxDirectory, RefusesShapesAndTypesThatDoNotFit) {
  const auto whole = tensors_;
  const auto problem_with = [&](const std::string& name, std::vector<int64_t> shape,
                                Encoding encoding) {
    tensors_ = whole;
    tensor(name) = {name, std::move(shape), encoding};
    return problem();
  };
  for (const auto& shape :
       {std::vector<int64_t>{2, 7}, {3, 8}, {16}, {2, 1, 8}, {2, 0}, {0, 8}, {}})
    EXPECT_THAT(problem_with("m.weight", shape, Encoding::kU32), HasSubstr("do not fit together"));
  EXPECT_THAT(problem_with("m.weight", {2, 8}, Encoding::kI32), HasSubstr("got i32 [2, 8]"));
  EXPECT_THAT(problem_with("m.weight", {2, 64}, Encoding::kF16), HasSubstr("got f16 [2, 64]"));
  for (const char* name : {"m.scales", "m.biases"}) {
    for (const auto& shape : {std::vector<int64_t>{2, 3}, {4}, {2, 0}, {}, {2, 2, 1}})
      EXPECT_THAT(problem_with(name, shape, Encoding::kBF16), HasSubstr("do not fit together"));
    EXPECT_THAT(problem_with(name, {2, 2}, Encoding::kF16), HasSubstr("f16 [2, 2]"));
    EXPECT_THAT(problem_with(name, {2, 2}, Encoding::kU8), HasSubstr("u8 [2, 2]"));
  }
  // Nothing in it: sizes say nothing then, and could be any.
  tensors_ = {{"m.weight", {0, 8}, Encoding::kU32},
              {"m.scales", {0, INT64_MAX / 64}, Encoding::kF32},
              {"m.biases", {0, INT64_MAX / 64}, Encoding::kF32}};
  EXPECT_THAT(problem(), HasSubstr("do not fit together"));
}

TEST_F(MlxDirectory, TwoSettingsThatDifferAreNone) {
  write();
  const auto problem_of = [&](const Json& config) {
    directory_.write("config.json", config.dump());
    const auto checkpoint = open_checkpoint(directory_.path());
    return checkpoint.ok() ? "" : checkpoint.error().message();
  };
  const Json other = {{"group_size", 64}, {"bits", 4}};
  for (const char* key : {"quantization", "quantization_config"}) {
    EXPECT_EQ(problem_of({{"hidden_size", 64}, {key, quantization_}}), "");
    EXPECT_EQ(problem_of({{"text_config", {{"hidden_size", 64}, {key, quantization_}}},
                          {"quantization", quantization_}}),
              "");
    EXPECT_THAT(problem_of({{"text_config", {{"hidden_size", 64}, {key, other}}},
                            {"quantization", quantization_}}),
                HasSubstr("two quantisations"));
  }
  EXPECT_THAT(problem_of({{"hidden_size", 64},
                          {"quantization", quantization_},
                          {"quantization_config", {{"quant_method", "fp8"}, {"bits", 8}}}}),
              HasSubstr("'quantization_config' in config.json"));
}

TEST_F(MlxDirectory, APrefixedModelKeepsItsSettings) {
  quantization_["language_model.m"] = {{"group_size", 32}, {"bits", 4}};
  quantization_["bits"] = 8;
  for (TensorDeclaration& tensor : tensors_) tensor.name = "language_model." + tensor.name;
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(open_checkpoint(directory_.path())->weights.get("m.weight")->encoding,
            Encoding::kAffine4G32);
}

TEST_F(MlxDirectory, FloatsWithoutScalesAreFloatsWhateverTheSettingsSay) {
  quantization_["m"] = {{"group_size", 64}, {"bits", 8}};
  tensors_ = {{"m.weight", {2, 64}}, {"n.weight", {2, 64}, Encoding::kF16}};
  ASSERT_EQ(problem(), "");
  EXPECT_EQ(open_checkpoint(directory_.path())->weights.get("m.weight")->encoding, Encoding::kF32);
}

// Names that mean something here only in a quantised model.
TEST_F(MlxDirectory, AnUnquantisedModelMayNameTensorsAsItLikes) {
  quantization_ = nullptr;
  tensors_ = {
      {"a.scales", {2}}, {"a.weight", {2}}, {"b.biases", {3}}, {"c.weight", {2}, Encoding::kU32}};
  EXPECT_EQ(problem(), "");
}

}  // namespace
}  // namespace espalier::formats
