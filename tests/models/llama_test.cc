#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/models/model.h"
#include "espalier/program/ops.h"
#include "espalier/program/validate.h"
#include "tests/models/shapes.h"

namespace espalier::models {
namespace {

using program::OpKind;

Model make(const FakeCheckpoint& fake) {
  auto model = make_model(fake.config, fake.weights());
  if (!model.ok()) check_failed(__FILE__, __LINE__, model.error().message());
  return std::move(model).value();
}

int64_t count(const program::Program& program, OpKind kind) {
  return std::count_if(program.ops.begin(), program.ops.end(),
                       [&](const auto& op) { return op.kind == kind; });
}

TEST(Llama, HasTheSizesOfItsCheckpoint) {
  const Model model = make(fake_llama());
  EXPECT_EQ(model.architecture, "llama");
  EXPECT_EQ(model.vocab_size, 33);
  EXPECT_EQ(model.hidden_size, 12);
  EXPECT_EQ(model.layer_count, 2);
  EXPECT_EQ(model.context_length, 64);
  EXPECT_EQ(model.head_tensor, model.embedding_tensor);
  EXPECT_EQ(model.required_tensors.size(), 20u);
}

TEST(Llama, BuildsValidProgramsOfAnyShapeWithSharedStates) {
  const Model model = make(fake_llama());
  program::ProgramSet set;
  for (const int64_t rows : {1, 7, 64}) {
    for (const int64_t kv_rows : {16, 64}) {
      for (const auto head : {program::Head::kArgmax, program::Head::kLogits}) {
        set.functions.push_back(model.build({rows, kv_rows, 1, head}));
      }
    }
  }
  const Status status = program::validate(set);
  EXPECT_TRUE(status.ok()) << status.error().message();
}

TEST(Llama, TakesAnUntiedHeadWhereThereIsOne) {
  FakeCheckpoint fake = fake_llama();
  fake.add("lm_head.weight", {33, 12});
  EXPECT_EQ(make(fake).head_tensor, "lm_head.weight");
}

TEST(Llama, TakesBiasesFromTheCheckpointWhereTheConfigurationIsSilent) {
  FakeCheckpoint fake = fake_qwen2();
  fake.config["model_type"] = "llama";
  const auto with = make(fake).required_tensors;
  EXPECT_THAT(with, testing::Contains("model.layers.1.self_attn.v_proj.bias"));
  fake.config["attention_bias"] = false;
  EXPECT_THAT(make(fake).required_tensors,
              testing::Not(testing::Contains("model.layers.1.self_attn.v_proj.bias")));
}

TEST(Llama, DoesNotNeedHeadDimOrKvHeads) {
  FakeCheckpoint fake = fake_llama();
  fake.config.erase("num_key_value_heads");
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    fake.add(layer + "self_attn.k_proj.weight", {12, 12});
    fake.add(layer + "self_attn.v_proj.weight", {12, 12});
  }
  EXPECT_EQ(make(fake).build({}).states.front().shape.channels, 12);
}

TEST(Qwen2, HasBiasesOfQueriesKeysAndValuesOnly) {
  const auto tensors = make(fake_qwen2()).required_tensors;
  EXPECT_THAT(tensors, testing::Contains("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_THAT(tensors, testing::Not(testing::Contains("model.layers.0.self_attn.o_proj.bias")));
}

TEST(Qwen3, NormsTheHeadsBeforeTheRotation) {
  const auto program = make(fake_qwen3()).build({});
  EXPECT_EQ(count(program, OpKind::kRmsNorm), 2 * 4 + 1);
  EXPECT_EQ(count(make(fake_llama()).build({}), OpKind::kRmsNorm), 2 * 2 + 1);
}

struct Window {
  const char* model_type;
  Json changes;
  int64_t context;
};

TEST(SlidingWindow, CutsTheContextToWhereItDoesNotMatter) {
  const Window cases[] = {
      {"llama", {{"sliding_window", 16}}, 64},  // the key is not llama's
      {"mistral", {{"sliding_window", 16}}, 16},
      {"mistral", {{"sliding_window", nullptr}}, 64},
      {"mistral", {{"sliding_window", 100}}, 64},
      {"qwen3", {{"sliding_window", 16}}, 64},                                // not used
      {"qwen3", {{"sliding_window", 16}, {"use_sliding_window", true}}, 64},  // 28 full layers
      {"qwen3",
       {{"sliding_window", 16}, {"use_sliding_window", true}, {"max_window_layers", 1}},
       16},
      {"qwen3",
       {{"sliding_window", 16},
        {"use_sliding_window", true},
        {"layer_types", {"full_attention", "sliding_attention"}}},
       16},
  };
  for (const Window& window : cases) {
    FakeCheckpoint fake = fake_qwen3();
    fake.config["model_type"] = window.model_type;
    fake.config.update(window.changes);
    const Model model = make(fake);
    EXPECT_EQ(model.context_length, window.context) << window.model_type << window.changes;
    EXPECT_EQ(model.context_reason, window.context < 64 ? "the model's sliding window" : "");
  }
}

}  // namespace
}  // namespace espalier::models
