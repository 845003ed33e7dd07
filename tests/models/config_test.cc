// What a hostile or mistaken checkpoint is told, for all architectures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "espalier/models/model.h"
#include "espalier/program/validate.h"
#include "tests/models/shapes.h"

namespace espalier::models {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char* what;
  std::function<FakeCheckpoint()> make;
  const char* message;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.what; }

std::function<FakeCheckpoint()> llama_with(const Json& changes) {
  return [changes] {
    FakeCheckpoint fake = fake_llama();
    fake.config.merge_patch(changes);
    return fake;
  };
}
std::function<FakeCheckpoint()> lfm2_with(const Json& changes) {
  return [changes] {
    FakeCheckpoint fake = fake_lfm2();
    fake.config.update(changes);
    return fake;
  };
}
std::function<FakeCheckpoint()> llama_without(const std::string& tensor) {
  return [tensor] {
    FakeCheckpoint fake = fake_llama();
    fake.tensors.erase(tensor);
    return fake;
  };
}
std::function<FakeCheckpoint()> llama_shaped(const std::string& tensor,
                                             const std::vector<int64_t>& shape) {
  return [tensor, shape] {
    FakeCheckpoint fake = fake_llama();
    fake.add(tensor, shape);
    return fake;
  };
}

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamed) {
  const FakeCheckpoint fake = GetParam().make();
  const auto model = make_model(fake.config, fake.weights());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message(), HasSubstr(GetParam().message));
}

const Mistake kMistakes[] = {
    {"NoModelType", llama_with({{"model_type", nullptr}}), "key 'model_type' is missing"},
    {"UnknownArchitecture", llama_with({{"model_type", "mamba"}}),
     "architecture 'mamba' is unknown: expected llama, mistral, qwen2, qwen3, lfm2"},
    {"NoHiddenSize", llama_with({{"hidden_size", nullptr}}), "llama: key 'hidden_size' is missing"},
    {"HiddenSizeOfText", llama_with({{"hidden_size", "12"}}),
     "key 'hidden_size' has the wrong type"},
    {"NegativeHiddenSize", llama_with({{"hidden_size", -12}}),
     "'hidden_size' is out of range: expected 1 to 16777216, got -12"},
    {"ZeroHeads", llama_with({{"num_attention_heads", 0}}),
     "'num_attention_heads' is out of range"},
    {"HugeHeads", llama_with({{"num_attention_heads", INT64_MAX}}),
     "'num_attention_heads' is out of"},
    {"HeadsThatDoNotDivide", llama_with({{"num_attention_heads", 5}, {"num_key_value_heads", 5}}),
     "'num_attention_heads' does not divide 'hidden_size': expected a divisor of 12, got 5"},
    {"KvHeadsThatDoNotDivide", llama_with({{"num_key_value_heads", 2}}),
     "'num_key_value_heads' does not divide 'num_attention_heads': expected a divisor of 3, got 2"},
    {"HugeHeadDim", llama_with({{"head_dim", 1 << 24}}),
     "'num_attention_heads' times 'head_dim' is out of range"},
    {"PartialRotationOfScaledRope",
     llama_with(
         {{"partial_rotary_factor", 0.5}, {"rope_scaling", {{"type", "linear"}, {"factor", 2}}}}),
     "'partial_rotary_factor' with rope_type 'linear'"},
    {"PartialRotationInsideOfScaledRope",
     lfm2_with({{"rope_parameters",
                 {{"rope_type", "yarn"}, {"factor", 2}, {"partial_rotary_factor", 0.5}}}}),
     "'partial_rotary_factor' with rope_type 'yarn'"},
    {"OddHeadDim", llama_with({{"head_dim", 3}}), "rotary width is out of range"},
    {"ManyLayers", llama_with({{"num_hidden_layers", 16000000}}),
     "'num_hidden_layers' is out of range: expected 1 to 1024, got 16000000"},
    {"MoreLayersThanTensors", llama_with({{"num_hidden_layers", 21}}),
     "'num_hidden_layers' exceeds the number of tensors: expected at most 20, got 21"},
    {"WideHeads", llama_with({{"head_dim", 4098}}), "heads are too wide: expected at most 4096"},
    {"OneLayerTooMany", llama_with({{"num_hidden_layers", 3}}),
     "tensor 'model.layers.2.input_layernorm.weight' is missing"},
    {"OneLayerTooFew", llama_with({{"num_hidden_layers", 1}}),
     "'num_hidden_layers' leaves layers out: expected more than 1, which tensor "
     "'model.layers.1.input_layernorm.weight' belongs to, got 1"},
    {"ALayerFarBehindTheOthers", llama_shaped("model.layers.9.self_attn.q_proj.weight", {12, 12}),
     "'num_hidden_layers' leaves layers out: expected more than 9"},
    {"OneLayerOfLfm2TooFew", lfm2_with({{"num_hidden_layers", 1}, {"layer_types", {"conv"}}}),
     "'num_hidden_layers' leaves layers out"},
    {"NoVocabulary", llama_with({{"vocab_size", 0}}),
     "'vocab_size' is not that of the weights: expected 33, the rows of "
     "'model.embed_tokens.weight', got 0"},
    {"SmallerVocabulary", llama_with({{"vocab_size", 32}}), "'vocab_size' is not that"},
    {"LargerVocabulary", llama_with({{"vocab_size", 34}}), "'vocab_size' is not that"},
    {"HugeVocabulary", llama_with({{"vocab_size", int64_t{1} << 40}}), "'vocab_size' is not that"},
    {"VocabularyOfLfm2", lfm2_with({{"vocab_size", 34}}), "'vocab_size' is not that"},
    {"VocabularyOfText", llama_with({{"vocab_size", "33"}}), "'vocab_size' has the wrong type"},
    {"NegativeContext", llama_with({{"max_position_embeddings", -1}}), "'max_position_embeddings'"},
    {"EpsilonOfTwo", llama_with({{"rms_norm_eps", 2}}), "'rms_norm_eps' is out of range"},
    {"UnknownActivation", llama_with({{"hidden_act", "relu"}}), "'hidden_act' is not supported"},
    {"BiasThatIsNotThere", llama_with({{"attention_bias", true}}),
     "tensor 'model.layers.0.self_attn.q_proj.bias' is missing"},
    {"UntiedWithoutHead", llama_with({{"tie_word_embeddings", false}}),
     "tensor 'lm_head.weight' is missing"},
    {"MissingTensor", llama_without("model.layers.1.mlp.up_proj.weight"),
     "tensor 'model.layers.1.mlp.up_proj.weight' is missing"},
    {"MissingEmbedding", llama_without("model.embed_tokens.weight"),
     "tensor 'model.embed_tokens.weight' is missing"},
    {"WrongShape", llama_shaped("model.layers.1.self_attn.k_proj.weight", {5, 12}),
     "tensor 'model.layers.1.self_attn.k_proj.weight' has the wrong shape: expected [4, 12], got "
     "[5, 12]"},
    {"EmbeddingOfAnotherWidth", llama_shaped("model.embed_tokens.weight", {33, 13}),
     "tensor 'model.embed_tokens.weight' has the wrong shape"},
    {"WidthAgainstConfig", llama_with({{"intermediate_size", 21}}),
     "tensor 'model.layers.0.mlp.gate_proj.weight' has the wrong shape: expected [21, 12], got "
     "[20, 12]"},
    {"UnknownRope", llama_with({{"rope_scaling", {{"type", "magic"}}}}), "rope_type is unknown"},
    {"RopeOfText", llama_with({{"rope_scaling", "linear"}}), "'rope_scaling' has the wrong type"},
    {"RopeByLayer", llama_with({{"rope_parameters", {{"full_attention", {{"rope_theta", 1.0}}}}}}),
     "rope parameters differ between layers"},
    {"NegativeTheta", llama_with({{"rope_theta", -1}}),
     "rope parameter 'rope_theta' is out of range"},
    {"LinearWithoutFactor", llama_with({{"rope_scaling", {{"type", "linear"}}}}),
     "key 'factor' is missing"},
    {"YarnWithoutFactor", llama_with({{"rope_scaling", {{"type", "yarn"}}}}),
     "key 'factor' is missing"},
    {"Llama3FactorsInDisorder",
     llama_with({{"rope_scaling",
                  {{"rope_type", "llama3"},
                   {"factor", 8},
                   {"low_freq_factor", 4},
                   {"high_freq_factor", 1}}}}),
     "rope parameter 'high_freq_factor' is out of range"},
    {"LongropeWithoutFactors", llama_with({{"rope_scaling", {{"type", "longrope"}}}}),
     "rope parameter 'short_factor' has the wrong shape: expected a list of 2 numbers, got "
     "nothing"},
    {"FrequenciesOfAnotherSize", llama_shaped("rope_freqs.weight", {3}),
     "tensor 'rope_freqs.weight' has the wrong shape"},
    {"FrequenciesOfZero", llama_shaped("rope_freqs.weight", {2}),
     "tensor 'rope_freqs.weight' has a bad value"},
    {"LayerTypesOfAnotherLength", lfm2_with({{"layer_types", {"conv"}}}),
     "lfm2: config: 'layer_types' has the wrong length: expected 2 entries, got 1"},
    {"UnknownLayerType", lfm2_with({{"layer_types", {"conv", "ssm"}}}),
     "'layer_types' has an unknown entry"},
    {"AttentionIndexBeyondTheLayers",
     lfm2_with({{"layer_types", nullptr}, {"full_attn_idxs", {2}}}),
     "'full_attn_idxs' has a bad entry: expected layers 0 to 1, got 2"},
    {"AttentionIndexOfText", lfm2_with({{"layer_types", nullptr}, {"full_attn_idxs", "all"}}),
     "'full_attn_idxs' has a bad entry"},
    {"KernelOfOne", lfm2_with({{"conv_L_cache", 1}}), "'conv_L_cache' is out of range"},
    {"KernelOfThousand", lfm2_with({{"conv_L_cache", 1000}}), "'conv_L_cache' is out of range"},
    {"KernelAgainstTensor", lfm2_with({{"conv_L_cache", 4}}),
     "tensor 'model.layers.0.conv.conv.weight' has the wrong shape"},
    {"ConvBiasThatIsNotThere", lfm2_with({{"conv_bias", true}}),
     "tensor 'model.layers.0.conv.in_proj.bias' is missing"},
};

INSTANTIATE_TEST_SUITE_P(Models, Mistakes, testing::ValuesIn(kMistakes),
                         [](const auto& info) { return info.param.what; });

TEST(Models, AreNamedForMessages) { EXPECT_THAT(known_architectures(), testing::Contains("lfm2")); }

TEST(Models, ConfigThatIsNoObjectIsRefused) {
  for (const char* text : {"null", "[]", "3", "\"llama\""}) {
    EXPECT_FALSE(make_model(Json::parse(text), fake_llama().weights()).ok());
  }
}

// Any value at any key: a model or an error, never a crash, and a model's programs are valid.
TEST(Models, SurviveAnyConfiguration) {
  std::mt19937 random(9);
  const Json values = Json::parse(
      "[null, true, -1, 0, 1, 2, 3, 4, 12, 1e9, 9223372036854775807, 18446744073709551615, 0.5, "
      "1e308, "
      "\"\", \"conv\", [], [1], [1, 2], {}, {\"rope_type\": \"yarn\"}, {\"rope_type\": \"yarn\", "
      "\"factor\": 0.5}, {\"type\": \"longrope\", \"short_factor\": [1, 2]}, {\"type\": "
      "\"dynamic\"}]");
  const Json keys = Json::parse(
      "[\"hidden_size\", \"num_hidden_layers\", \"num_attention_heads\", \"num_key_value_heads\", "
      "\"head_dim\", \"intermediate_size\", \"max_position_embeddings\", \"rms_norm_eps\", "
      "\"norm_eps\", "
      "\"rope_theta\", \"rope_scaling\", \"rope_parameters\", \"partial_rotary_factor\", "
      "\"sliding_window\", \"use_sliding_window\", \"layer_types\", \"full_attn_idxs\", "
      "\"conv_L_cache\", "
      "\"conv_bias\", \"attention_bias\", \"mlp_bias\", \"tie_word_embeddings\", "
      "\"rope_interleaved\", "
      "\"original_max_position_embeddings\"]");
  int models = 0;
  for (int round = 0; round < 6000; ++round) {
    FakeCheckpoint fake =
        round % 2 == 0 ? fake_llama(round % 4 == 0 ? "qwen2" : "llama") : fake_lfm2();
    for (int change = 0; change < 1 + round % 3; ++change) {
      fake.config[keys[random() % keys.size()].get<std::string>()] =
          values[random() % values.size()];
    }
    const auto model = make_model(fake.config, fake.weights());
    if (!model.ok()) continue;
    ++models;
    EXPECT_TRUE(program::validate(model->build({.rows = 3, .kv_rows = 8, .selected = 2})).ok());
    EXPECT_GE(model->context_length, 1);
  }
  EXPECT_GT(models, 500);
}

// The same for the numbers of a rope, alone and together: whatever they make of each other.
TEST(Models, SurviveAnyRope) {
  std::mt19937 random(10);
  const double numbers[] = {0,         1e-320, 1e-60, 1e-45, 1e-40, 1e-9, 1e-6, 1e-5, 0.5,   1,
                            1 + 1e-15, 2,      32,    1e4,   1e6,   1e11, 1e13, 1e40, 1e308, -1};
  const char* types[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};
  const char* keys[] = {"factor",           "rope_theta",
                        "low_freq_factor",  "high_freq_factor",
                        "beta_fast",        "beta_slow",
                        "attention_factor", "mscale",
                        "mscale_all_dim",   "partial_rotary_factor"};
  const auto number = [&] { return numbers[random() % std::size(numbers)]; };
  int models = 0;
  for (int round = 0; round < 6000; ++round) {
    FakeCheckpoint fake = fake_llama();
    Json rope = {{"rope_type", types[random() % std::size(types)]},
                 {"factor", 4.0},
                 {"low_freq_factor", 1.0},
                 {"high_freq_factor", 4.0},
                 {"short_factor", {number(), 1.0}},
                 {"original_max_position_embeddings", 1 + random() % 64},
                 {"truncate", random() % 2 == 0}};
    for (int change = 0; change < round % 4; ++change) {
      rope[keys[random() % std::size(keys)]] = number();
    }
    fake.config["rope_scaling"] = rope;
    const auto model = make_model(fake.config, fake.weights());
    if (!model.ok()) continue;
    ++models;
    EXPECT_TRUE(program::validate(model->build({.rows = 3, .kv_rows = 8, .selected = 2})).ok());
  }
  EXPECT_GT(models, 500);
}

}  // namespace
}  // namespace espalier::models
