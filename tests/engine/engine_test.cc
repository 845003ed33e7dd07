#include "espalier/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/golden_models.h"

namespace espalier::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Buckets, AreAtMostSixAndTheLastIsTheContext) {
  EXPECT_THAT(buckets_of(1), ElementsAre(1));
  EXPECT_THAT(buckets_of(300), ElementsAre(300));
  EXPECT_THAT(buckets_of(512), ElementsAre(512));
  EXPECT_THAT(buckets_of(513), ElementsAre(512, 513));
  EXPECT_THAT(buckets_of(8192), ElementsAre(512, 1024, 2048, 4096, 8192));
  EXPECT_THAT(buckets_of(16384), ElementsAre(512, 1024, 2048, 4096, 8192, 16384));
  EXPECT_THAT(buckets_of(131072), ElementsAre(512, 2048, 8192, 32768, 131072));
  EXPECT_THAT(buckets_of(1048576), ElementsAre(512, 4096, 32768, 262144, 1048576));
}

TEST(Buckets, GrowForEveryContext) {
  for (int64_t context = 1; context < int64_t{1} << 40; context = context * 3 / 2 + 1) {
    const std::vector<int64_t> buckets = buckets_of(context);
    EXPECT_LE(buckets.size(), 6U);
    EXPECT_EQ(buckets.back(), context);
    EXPECT_TRUE(std::ranges::is_sorted(buckets, std::less_equal()));
  }
}

TEST(Engine, LoadsEveryGoldenModelAndClosesItsFiles) {
  for (const std::string name : {"llama_tied", "qwen3", "mistral", "lfm2_mixed"}) {
    const auto engine = load_golden(name);
    EXPECT_EQ(engine->options().unit, "cpu");
    EXPECT_EQ(engine->options().context, engine->model().context_length);
    EXPECT_TRUE(engine->checkpoint().weights.all().empty());
    EXPECT_FALSE(engine->tensors().empty());
    EXPECT_GT(engine->executable().memory_use().weight_bytes, 0);
  }
}

TEST(Engine, HasAFunctionForEachBucketAndHead) {
  const auto engine = load_golden("llama_tied", {.context = 512});
  EXPECT_EQ(engine->buckets().size(), 1U);
  EXPECT_EQ(engine->function(0, program::Head::kArgmax), 0U);
  EXPECT_EQ(engine->function(0, program::Head::kLogits), 1U);
  EXPECT_EQ(engine->program(0, program::Head::kLogits).rows, 64);
}

TEST(Engine, TakesEndTokensFromEveryPlaceThatNamesThem) {
  formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory("llama_tied")).value();
  checkpoint.config["eos_token_id"] = 2;
  checkpoint.generation_config = {{"eos_token_id", {7, 5, 2}}};
  checkpoint.tokenizer.emplace().eos_id = 9;
  const auto engine = Engine::load(std::move(checkpoint), {}).value();
  EXPECT_THAT(engine->end_tokens(), ElementsAre(2, 5, 7, 9));
}

TEST(Engine, RefusesEndTokensThatAreNoTokensOfTheModel) {
  const formats::Checkpoint good = formats::open_checkpoint(golden_directory("llama_tied")).value();
  for (const char* text : {"-1", "100000", "4294967299", "18446744073709551615", "2.5", "\"2\"",
                           "[2, 100000]", "[2, null]", "{}", "true", "[[2]]"}) {
    for (const bool generation : {false, true}) {
      formats::Checkpoint checkpoint = good;
      if (generation) checkpoint.generation_config = Json::object();
      (generation ? checkpoint.generation_config : checkpoint.config)["eos_token_id"] =
          Json::parse(text);
      const auto engine = Engine::load(std::move(checkpoint), {});
      ASSERT_FALSE(engine.ok()) << text;
      EXPECT_THAT(engine.error().message(),
                  HasSubstr(generation ? "generation_config.json: 'eos_token_id' is no token"
                                       : ": config.json: 'eos_token_id' is no token"));
    }
  }
  formats::Checkpoint silent = good;
  silent.config["eos_token_id"] = nullptr;
  EXPECT_TRUE(Engine::load(std::move(silent), {}).ok());
}

TEST(Engine, SaysWhatEndsAContextBeforeTheConfigurationDoes) {
  formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory("mistral")).value();
  checkpoint.config["sliding_window"] = 100;
  const auto refused = Engine::load(formats::Checkpoint(checkpoint), {.context = 101});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("100 positions (the model's sliding window)"));
  const auto engine = Engine::load(std::move(checkpoint), {}).value();
  const auto answer = make_session(*engine)->generate(some_text(101), {}, keep_going);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message(),
              HasSubstr("at most 100 tokens, the model's sliding window"));
}

TEST(Engine, RefusesWhatItCannotDoWithAMessageThatSaysWhatItCan) {
  const std::pair<EngineOptions, const char*> bad[] = {
      {{.unit = "abacus"}, "abacus"},
      {{.window = 0}, "expected 1 to 1024 rows, got 0"},
      {{.window = 5000}, "expected 1 to 1024 rows, got 5000"},
      {{.context = 513}, "expected 1 to 512 positions, got 513"},
      {{.context = -1}, "expected 1 to 512 positions, got -1"},
      {{.compile = {.kernels = "quantum"}}, "quantum"},
  };
  for (const auto& [options, message] : bad) {
    const auto engine = Engine::load(golden_directory("llama_tied"), options);
    ASSERT_FALSE(engine.ok()) << message;
    EXPECT_THAT(engine.error().message(), HasSubstr(message));
  }
  EXPECT_FALSE(Engine::load("/nowhere/at/all.gguf", {}).ok());
}

}  // namespace
}  // namespace espalier::engine
