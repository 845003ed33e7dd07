#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/models/model.h"
#include "espalier/program/validate.h"
#include "tests/models/shapes.h"

namespace espalier::models {
namespace {

using program::OpKind;
using program::StateKind;

Model make(const FakeCheckpoint& fake) {
  auto model = make_model(fake.config, fake.weights());
  if (!model.ok()) check_failed(__FILE__, __LINE__, model.error().message());
  return std::move(model).value();
}

std::vector<StateKind> state_kinds(const Model& model) {
  std::vector<StateKind> kinds;
  for (const auto& state : model.build({}).states) kinds.push_back(state.kind);
  return kinds;
}

TEST(Lfm2, HasAStateForEachLayerOfItsKind) {
  EXPECT_THAT(state_kinds(make(fake_lfm2())),
              testing::ElementsAre(StateKind::kShortConv, StateKind::kKeyValue));
}

TEST(Lfm2, ReadsIndicesOfAttentionLayersInOlderConfigurations) {
  FakeCheckpoint fake = fake_lfm2();
  fake.config.erase("layer_types");
  fake.config["full_attn_idxs"] = {1};
  EXPECT_EQ(state_kinds(make(fake)), state_kinds(make(fake_lfm2())));
}

TEST(Lfm2, ReadsTheThirdsOfInProjInTheOrderGateGateInput) {
  const auto program = make(fake_lfm2()).build({});
  std::vector<int64_t> first_rows;
  for (const auto& weight : program.weights) {
    if (weight.tensor == "model.layers.0.conv.in_proj.weight")
      first_rows.push_back(weight.first_row);
  }
  EXPECT_THAT(first_rows, testing::ElementsAre(0, 12, 24));
  // conv_in = B * x takes the first and the last third.
  for (const auto& op : program.ops) {
    if (op.kind != OpKind::kMul || program.value(op.outputs[0]).name != "layers.0.conv_in")
      continue;
    EXPECT_EQ(program.value(op.inputs[0]).name, "layers.0.conv_b");
    EXPECT_EQ(program.value(op.inputs[1]).name, "layers.0.conv_x");
  }
}

TEST(Lfm2, TakesTheFfnWidthFromTheTensor) {
  FakeCheckpoint fake = fake_lfm2();
  fake.config["block_ff_dim"] = 6656;  // nominal; exporters adjust it by different rules
  EXPECT_TRUE(make_model(fake.config, fake.weights()).ok());
}

TEST(Lfm2, ReadsThetaInEitherForm) {
  FakeCheckpoint nested = fake_lfm2();
  nested.config["rope_parameters"] = {{"rope_theta", 1e7}, {"rope_type", "default"}};
  FakeCheckpoint flat = fake_lfm2();
  flat.config["rope_theta"] = 1e7;
  EXPECT_EQ(make(nested).build({}), make(flat).build({}));
  EXPECT_NE(make(nested).build({}), make(fake_lfm2()).build({}));  // 1e6 where there is neither
}

TEST(Lfm2, HasNoConvInputsWithoutConvolutions) {
  FakeCheckpoint fake = fake_lfm2();
  fake.config["layer_types"] = {"full_attention", "full_attention"};
  for (const char* name :
       {"q_proj", "k_proj", "v_proj", "out_proj", "q_layernorm", "k_layernorm"}) {
    const std::string suffix = std::string("self_attn.") + name + ".weight";
    fake.tensors["model.layers.0." + suffix] = fake.tensors["model.layers.1." + suffix];
  }
  const auto program = make(fake).build({});
  for (const auto id : program.inputs) EXPECT_NE(program.value(id).name, "conv_gather");
}

TEST(Lfm2, ReadsTheConvolutionWithoutItsMiddleDimension) {
  FakeCheckpoint fake = fake_lfm2();
  fake.add("model.layers.0.conv.conv.weight", {12, 3});
  EXPECT_TRUE(make_model(fake.config, fake.weights()).ok());
}

}  // namespace
}  // namespace espalier::models
