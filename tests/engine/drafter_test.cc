// The shipped DSpark drafter of nano against what torch says with the same weights, and drafters
// that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "espalier/decode/step.h"
#include "espalier/engine/dspark_drafter.h"
#include "espalier/engine/executable_target.h"
#include "tests/engine/golden_models.h"
#include "tests/support/temporary_directory.h"

namespace espalier::engine {
namespace {

constexpr const char* kNano = ESPALIER_SOURCE_DIR "/models/nano";
constexpr const char* kNanoDrafter = ESPALIER_SOURCE_DIR "/models/nano-drafter";

Json golden_answers() {
  const std::string path = ESPALIER_SOURCE_DIR "/tests/golden/drafters.json";
  return parse_json(read_text_file(path).value(), path).value()["nano-drafter"];
}

// Torch computes in fp32 with the stored weights. The reference unit does so up to rounding; the cpu
// unit has 16-bit activations, fp16 K and V, and a head of 8 bits a channel.
struct Precision {
  const char* unit;
  double logit_error;
};

int64_t rank(std::span<const float> logits, int64_t row) {
  return std::ranges::count_if(
      logits, [&](float logit) { return logit > logits[static_cast<size_t>(row)]; });
}

class DSparkGolden : public ::testing::TestWithParam<Precision> {};

TEST_P(DSparkGolden, ProposesWhatTorchProposes) {
  const auto engine = Engine::load(kNano, {.unit = GetParam().unit, .drafter = kNanoDrafter});
  ASSERT_TRUE(engine.ok()) << engine.error().message();
  const decode::ChainWindows windows((*engine)->options().window);
  const std::atomic<bool> cancelled = false;
  int64_t compared = 0;
  for (const Json& answer : golden_answers()) {
    const auto ids = answer["token_ids"].get<std::vector<TokenId>>();
    for (const Json& round : answer["rounds"]) {
      const auto committed = round["committed"].get<size_t>();
      auto target = ExecutableTarget::create(**engine).value();
      ASSERT_TRUE(target->reserve(static_cast<int64_t>(ids.size())).ok());
      std::vector<std::unique_ptr<decode::Drafter>> drafters;
      auto owned = DSparkDrafter::create(**engine, 64).value();
      DSparkDrafter& drafter = *owned;
      drafters.push_back(std::move(owned));
      decode::Speculator speculator(std::move(drafters), 64);
      const auto text = std::span(ids).first(committed);
      const auto block = static_cast<int64_t>(round["chain"].size());
      ASSERT_TRUE(speculator.begin({decode::SpeculationMode::kChain, block}, text, 0).ok());
      ASSERT_TRUE(decode::run_chain({*target, windows, cancelled, speculator}, text,
                                    decode::HeadRows::kLast, decode::HeadKind::kArgmax));
      speculator.append(ids[committed]);
      const decode::DraftTree& tree = speculator.propose(block, 64);
      ASSERT_EQ(tree.size(), block + 1);
      const DraftNetwork& network = *(*engine)->draft_network();
      std::vector<int64_t> row_of(static_cast<size_t>(network.model().vocab_size), -1);
      for (int64_t row = 0; row < network.model().draft_rows; ++row) {
        row_of[static_cast<size_t>(network.token(row))] = row;
      }
      bool is_chain = true;
      for (int64_t slot = 0; slot < block; ++slot) {
        const auto at = static_cast<size_t>(slot);
        const Json& tokens = round["best_tokens"][at];
        for (size_t i = 0; i < tokens.size(); ++i) {
          const int64_t row = row_of.at(tokens[i].get<size_t>());
          ASSERT_GE(row, 0);
          EXPECT_NEAR(drafter.base_logits(slot)[static_cast<size_t>(row)],
                      round["best_logits"][at][i].get<double>(), GetParam().logit_error);
        }
        // Torch's chain rates all rows.
        const auto wanted = round["chain"][at].get<TokenId>();
        if (is_chain && rank(drafter.base_logits(slot), row_of.at(static_cast<size_t>(wanted))) >=
                            DSparkDrafter::kCandidates) {
          is_chain = false;
        }
        if (!is_chain) continue;
        EXPECT_EQ(tree.tokens()[at + 1], wanted) << "slot " << slot;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 40);  // of 80 slots
}

INSTANTIATE_TEST_SUITE_P(Units, DSparkGolden,
                         ::testing::Values(Precision{"reference", 2e-3}, Precision{"cpu", 0.15}),
                         [](const auto& info) { return std::string(info.param.unit); });

TEST(DraftNetwork, AnotherTargetsDrafterIsRefused) {
  const auto engine =
      Engine::load(kNano, {.drafter = ESPALIER_SOURCE_DIR "/models/smollm2-135m-drafter"});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message(), ::testing::HasSubstr("target"));
}

// Keys of nano's drafter with other values: none may end the process, all must be refused.
TEST(DraftNetwork, ConfigurationsThatLieAreRefused) {
  const std::string source = kNanoDrafter;
  const Json truth = parse_json(read_text_file(source + "/config.json").value(), "truth").value();
  const char* lies[] = {
      R"({"num_attention_heads": 1048576, "num_key_value_heads": null, "head_dim": 4096})",
      R"({"num_attention_heads": 0})",
      R"({"num_key_value_heads": 3})",
      R"({"head_dim": 63})",
      R"({"head_dim": 1})",
      R"({"hidden_size": 512})",
      R"({"vocab_size": 4095})",
      R"({"draft_vocab_size": 100})",
      R"({"num_hidden_layers": 0})",
      R"({"num_hidden_layers": 2})",
      R"({"num_hidden_layers": 1000000000})",
      R"({"intermediate_size": 641})",
      R"({"block_size": 0})",
      R"({"block_size": 1000000})",
      R"({"markov_rank": 65})",
      R"({"markov_head_type": "rnn"})",
      R"({"hidden_act": "gelu"})",
      R"({"attention_bias": true})",
      R"({"layer_types": ["sliding_attention"]})",
      R"({"rms_norm_eps": -1})",
      R"({"rope_theta": "much"})",
      R"({"dflash_config": {"target_layer_ids": [1, 1, 5], "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": [1, 3, 7], "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": [1, 3, -1], "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": [1, 3], "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": [], "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": "all", "mask_token_id": 14}})",
      R"({"dflash_config": {"target_layer_ids": [1, 3, 5], "mask_token_id": 4096}})",
      R"({"dflash_config": {"mask_token_id": null}})",
  };
  for (const char* lie : lies) {
    const TemporaryDirectory directory;
    Json config = truth;
    config.merge_patch(parse_json(lie, lie).value());
    directory.write("config.json", config.dump());
    std::filesystem::create_symlink(source + "/model.safetensors",
                                    directory.path() + "/model.safetensors");
    const auto engine = Engine::load(kNano, {.drafter = directory.path()});
    ASSERT_FALSE(engine.ok()) << lie;
    EXPECT_FALSE(engine.error().message().empty());
  }
}

TEST(DraftNetwork, AModelThatIsNoDrafterIsRefused) {
  const auto engine = Engine::load(kNano, {.drafter = kNano});
  ASSERT_FALSE(engine.ok());
  EXPECT_THAT(engine.error().message(), ::testing::HasSubstr("no drafter"));
  EXPECT_FALSE(Engine::load(kNano, {.drafter = "/nowhere"}).ok());
}

}  // namespace
}  // namespace espalier::engine
