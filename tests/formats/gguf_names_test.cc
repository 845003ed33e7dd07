// GGUF's names against those of transformers, as gguf-py maps them, and its keys against
// config.json's.
#include "espalier/formats/gguf_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/base/mapped_file.h"
#include "espalier/formats/gguf_config.h"
#include "tests/formats/gguf_builder.h"

namespace espalier::formats {
namespace {

using testing::HasSubstr;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/formats/architectures/";

Json expectations() {
  return *parse_json(*read_text_file(kGolden + "expected.json"), "expected.json");
}

TEST(GgufNames, AreTranslatedBackToWhatGgufPyMadeThemFrom) {
  const Json architectures = expectations();
  for (const auto& [architecture, expected] : architectures.items()) {
    const GgufArchitecture* row = gguf_architecture(architecture);
    ASSERT_NE(row, nullptr) << architecture;
    for (const auto& [name, tensor] : expected["tensors"].items()) {
      EXPECT_EQ(hugging_face_name(*row, tensor["gguf"]), name) << architecture;
    }
  }
}

TEST(GgufNames, WithoutARowStayAsTheyAre) {
  const GgufArchitecture& llama = *gguf_architecture("llama");
  for (const char* name :
       {"rope_freqs.weight", "blk.0.attn_q.scale", "blk.x.attn_q.weight", "blk..attn_q.weight",
        "blk.1", "blk.", "", ".", ".weight", "weight", "token_embd", "blk.0.unknown.weight",
        "blk.*.attn_q.weight", "attn_q.weight", "blk.0attn_q.weight"}) {
    EXPECT_EQ(hugging_face_name(llama, name), name);
  }
  EXPECT_EQ(hugging_face_name(llama, "blk.123.attn_q.bias"),
            "model.layers.123.self_attn.q_proj.bias");
  EXPECT_EQ(gguf_architecture("gpt9"), nullptr);
}

TEST(GgufNames, EitherNameOfTheFinalNormOfLfm2IsKnown) {
  const GgufArchitecture& lfm2 = *gguf_architecture("lfm2");
  EXPECT_EQ(hugging_face_name(lfm2, "token_embd_norm.weight"), "model.embedding_norm.weight");
  EXPECT_EQ(hugging_face_name(lfm2, "output_norm.weight"), "model.embedding_norm.weight");
}

TEST(GgufConfig, SaysWhatTransformersReadsFromTheSameFile) {
  const Json architectures = expectations();
  for (const auto& [architecture, expected] : architectures.items()) {
    const auto gguf = open_gguf(kGolden + architecture + ".gguf");
    ASSERT_TRUE(gguf.ok()) << gguf.error().message();
    const auto config = gguf_config(gguf->metadata);
    ASSERT_TRUE(config.ok()) << config.error().message();
    for (const auto& [key, value] : expected["config"].items()) {
      const Json& most = value.is_array() ? *std::max_element(value.begin(), value.end()) : value;
      EXPECT_EQ((*config)[key], most) << architecture << " " << key;
    }
    EXPECT_EQ((*config)["rope_theta"], 1e6);
    EXPECT_EQ((*config)["rope_interleaved"], architecture == "llama");
    EXPECT_FALSE(config->contains("rope_scaling"));
    EXPECT_EQ(config->contains("layer_types"), architecture == "lfm2");
    EXPECT_EQ(config->contains("head_dim"), architecture == "qwen3");
  }
}

// A configuration from nothing but the given entries and "llama".
template <typename Add>
Result<Json> config_with(Add add) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  add(builder);
  const auto bytes = builder.build();
  const auto gguf = parse_gguf(bytes, "test");
  EXPECT_TRUE(gguf.ok()) << gguf.error().message();
  return gguf_config(gguf->metadata);
}

TEST(GgufConfig, TellsLayersWithoutKvHeadsAsConvolutions) {
  const auto gguf = open_gguf(kGolden + "lfm2.gguf");
  EXPECT_EQ((*gguf_config(gguf->metadata))["layer_types"],
            Json::parse(R"(["conv", "full_attention"])"));
}

TEST(GgufConfig, RefusesLayersOfDifferentWidths) {
  const auto config = config_with([](GgufBuilder& builder) {
    builder.array("llama.feed_forward_length", GgufType::kInt32, std::vector<int32_t>{64, 64, 96});
  });
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message(), HasSubstr("differs between layers"));
}

TEST(GgufConfig, ReadsRopeScaling) {
  const auto scaling = [](const char* type, float factor) {
    const auto config = config_with([=](GgufBuilder& builder) {
      builder.text("llama.rope.scaling.type", type).f32("llama.rope.scaling.factor", factor);
      builder.u32("llama.rope.scaling.original_context_length", 4096);
    });
    return config->value("rope_scaling", Json());
  };
  EXPECT_TRUE(scaling("none", 8).is_null());
  EXPECT_TRUE(scaling("linear", 1).is_null());
  EXPECT_EQ(scaling("linear", 4)["rope_type"], "linear");
  EXPECT_EQ(scaling("yarn", 8)["original_max_position_embeddings"], 4096);
  EXPECT_EQ(scaling("yarn", 8)["factor"], 8);
  const auto old =
      config_with([](GgufBuilder& builder) { builder.f32("llama.rope.scale_linear", 2); });
  EXPECT_EQ((*old)["rope_scaling"], Json::parse(R"({"rope_type": "linear", "factor": 2.0})"));
}

TEST(GgufConfig, SaysWhatPartOfAHeadIsRotated) {
  const auto config = config_with([](GgufBuilder& builder) {
    builder.u32("llama.attention.key_length", 128).u32("llama.rope.dimension_count", 96);
  });
  EXPECT_EQ((*config)["rope_rotary_dim"], 96);
}

TEST(GgufConfig, RefusesWhatItCannotSay) {
  const auto experts =
      config_with([](GgufBuilder& builder) { builder.u32("llama.expert_count", 8); });
  ASSERT_FALSE(experts.ok());
  EXPECT_THAT(experts.error().message(), HasSubstr("mixtures of experts are not supported"));
  EXPECT_TRUE(config_with([](GgufBuilder& builder) { builder.u32("llama.expert_count", 0); }).ok());
  const auto lengths = [](uint32_t key, uint32_t value) {
    return config_with([=](GgufBuilder& builder) {
      builder.u32("llama.attention.key_length", key).u32("llama.attention.value_length", value);
    });
  };
  EXPECT_TRUE(lengths(64, 64).ok());
  EXPECT_THAT(lengths(64, 32).error().message(),
              HasSubstr("'llama.attention.value_length' is not supported: expected 64"));
  // Where the keys' length is not given, it follows from the width.
  const auto implied = config_with([](GgufBuilder& builder) {
    builder.u32("llama.embedding_length", 128).u32("llama.attention.head_count", 4);
    builder.u32("llama.attention.value_length", 16);
  });
  EXPECT_THAT(implied.error().message(), HasSubstr("expected 32, the length of the keys, got 16"));
}

TEST(GgufConfig, ASlidingWindowMakesALlamaAMistral) {
  const auto config = config_with(
      [](GgufBuilder& builder) { builder.u32("llama.attention.sliding_window", 4096); });
  EXPECT_EQ((*config)["model_type"], "mistral");
  EXPECT_EQ((*config)["sliding_window"], 4096);
}

TEST(GgufConfig, AWrongTypeIsAnErrorThatNamesTheKey) {
  const auto config =
      config_with([](GgufBuilder& builder) { builder.text("llama.block_count", "many"); });
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message(), HasSubstr("llama.block_count"));
  EXPECT_FALSE(gguf_config(GgufMetadata()).ok());
}

TEST(GgufConfig, GenerationDefaultsListEveryTokenThatEndsAnAnswer) {
  const auto bytes = GgufBuilder()
                         .u32("tokenizer.ggml.bos_token_id", 1)
                         .u32("tokenizer.ggml.eos_token_id", 7)
                         .u32("tokenizer.ggml.eot_token_id", 7)
                         .u32("tokenizer.ggml.eom_token_id", 9)
                         .f32("general.sampling.temp", 0.5f)
                         .entry("general.sampling.top_k", GgufType::kInt32, int32_t{50})
                         .build();
  const auto config = gguf_generation_config(parse_gguf(bytes, "test")->metadata);
  EXPECT_EQ(
      *config,
      Json::parse(
          R"({"bos_token_id": 1, "eos_token_id": [7, 9], "temperature": 0.5, "top_k": 50, "do_sample": true})"));
}

TEST(GgufConfig, ATemperatureSaysWhetherAnswersAreDrawn) {
  const auto config_of = [](std::optional<float> temperature) {
    GgufBuilder builder;
    builder.f32("general.sampling.top_p", 0.9f);
    if (temperature) builder.f32("general.sampling.temp", *temperature);
    return gguf_generation_config(parse_gguf(builder.build(), "test")->metadata).value();
  };
  EXPECT_EQ(config_of(0.7f)["do_sample"], true);
  EXPECT_EQ(config_of(0.0f)["do_sample"], false);
  EXPECT_FALSE(config_of(std::nullopt).contains("do_sample"));
}

}  // namespace
}  // namespace espalier::formats
