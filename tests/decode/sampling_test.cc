#include "espalier/decode/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"

namespace espalier::decode {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

SamplingOptions options_of(const Json& golden) {
  SamplingOptions options{.temperature = golden["temperature"],
                          .top_k = golden["top_k"],
                          .top_p = golden["top_p"],
                          .min_p = golden["min_p"],
                          .repetition_penalty = golden["repetition_penalty"],
                          .presence_penalty = golden["presence_penalty"],
                          .frequency_penalty = golden["frequency_penalty"]};
  for (const Json& bias : golden["logit_bias"]) options.logit_bias.push_back({bias[0], bias[1]});
  return options;
}

TEST(Sampler, DrawsFromTheDistributionOfTransformersProcessors) {
  const std::string path = ESPALIER_SOURCE_DIR "/tests/golden/sampling/cases.json";
  const Json cases = parse_json(read_text_file(path).value(), path).value();
  ASSERT_EQ(cases.size(), 120U);
  for (size_t index = 0; index < cases.size(); ++index) {
    const Json& golden = cases[index];
    const std::vector<float> logits = golden["logits"];
    const std::vector<double> expected = golden["probabilities"];
    Sampler sampler =
        Sampler::make(options_of(golden), static_cast<int64_t>(logits.size())).value();
    sampler.observe_prompt(golden["prompt"].get<std::vector<TokenId>>());
    for (const TokenId token : golden["answer"]) sampler.observe_answer(token);
    std::vector<float> actual(logits.size());
    sampler.distribution(logits, actual);
    for (size_t id = 0; id < expected.size(); ++id) {
      EXPECT_EQ(actual[id] > 0, expected[id] > 0) << "case " << index << " id " << id;
      // Scores reach 1e3 (temperature 0.1, biases), where one fp32 step is 6e-5; probabilities
      // follow.
      EXPECT_NEAR(actual[id], expected[id], 2e-6 + 2e-4 * expected[id])
          << "case " << index << " id " << id;
    }
  }
}

TEST(Sampler, TakesTheBestLogitWithoutAnyProcessor) {
  Sampler sampler = Sampler::make({.temperature = 0}, 4).value();
  const float logits[] = {1, 7, -2, 7};
  sampler.observe_answer(1);
  EXPECT_EQ(sampler.sample(logits, 0), 1);  // the lowest id of a tie
  float probabilities[4];
  sampler.distribution(logits, probabilities);
  EXPECT_THAT(probabilities, testing::ElementsAre(0, 1, 0, 0));
}

// Pearson's statistic of `draws` samples against the probabilities, and its degrees of freedom.
struct ChiSquare {
  double statistic = 0;
  double degrees = -1;
  // Wilson and Hilferty: about standard normal.
  double deviation() const {
    return (std::cbrt(statistic / degrees) - (1 - 2 / (9 * degrees))) /
           std::sqrt(2 / (9 * degrees));
  }
};

ChiSquare chi_square(Sampler& sampler, const std::vector<float>& logits, int draws) {
  std::vector<float> probabilities(logits.size());
  sampler.distribution(logits, probabilities);
  std::vector<int> counts(logits.size());
  for (int position = 0; position < draws; ++position) {
    ++counts[static_cast<size_t>(sampler.sample(logits, position))];
  }
  ChiSquare result;
  double rare_expected = 0;
  double rare_count = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    const double expected = probabilities[id] * static_cast<double>(draws);
    EXPECT_TRUE(expected > 0 || counts[id] == 0) << "a token that was cut off was drawn: " << id;
    if (expected < 5) {
      rare_expected += expected;
      rare_count += counts[id];
      continue;
    }
    result.statistic += std::pow(counts[id] - expected, 2) / expected;
    ++result.degrees;
  }
  if (rare_expected >= 5) {
    result.statistic += std::pow(rare_count - rare_expected, 2) / rare_expected;
    ++result.degrees;
  }
  return result;
}

TEST(Sampler, DrawsEachTokenAsOftenAsItsProbabilitySays) {
  std::mt19937 generator(3);
  std::normal_distribution<float> normal(0, 2);
  const SamplingOptions choices[] = {
      {.temperature = 1, .seed = 1},
      {.temperature = 0.7, .top_k = 20, .seed = 2},
      {.temperature = 1.3, .top_p = 0.9, .seed = 3},
      {.temperature = 1, .min_p = 0.05, .seed = 4},
      {.temperature = 0.8, .top_k = 50, .top_p = 0.95, .min_p = 0.01, .seed = 5, .sequence = 9},
  };
  for (const SamplingOptions& options : choices) {
    for (const size_t vocab : {10, 300, 5000}) {
      std::vector<float> logits(vocab);
      std::ranges::generate(logits, [&] { return normal(generator); });
      Sampler sampler = Sampler::make(options, static_cast<int64_t>(vocab)).value();
      const ChiSquare result = chi_square(sampler, logits, vocab > 1000 ? 4000 : 20000);
      EXPECT_LT(std::abs(result.deviation()), 4) << "seed " << options.seed << " vocab " << vocab;
    }
  }
}

TEST(Sampler, AChoiceDependsOnSeedSequenceAndPositionAlone) {
  const std::vector<float> logits(100, 0.0F);
  const SamplingOptions options{.temperature = 1, .seed = 42, .sequence = 1};
  Sampler forwards = Sampler::make(options, 100).value();
  Sampler backwards = Sampler::make(options, 100).value();
  std::vector<TokenId> first(50), second(50);
  for (int i = 0; i < 50; ++i) first[static_cast<size_t>(i)] = forwards.sample(logits, i);
  for (int i = 49; i >= 0; --i) second[static_cast<size_t>(i)] = backwards.sample(logits, i);
  EXPECT_EQ(first, second);
  Sampler other = Sampler::make({.temperature = 1, .seed = 42, .sequence = 2}, 100).value();
  for (int i = 0; i < 50; ++i) second[static_cast<size_t>(i)] = other.sample(logits, i);
  EXPECT_NE(first, second);
}

TEST(Sampler, TiesGoToTheLowestId) {
  const std::vector<float> logits = {1, 2, 2, 2};
  EXPECT_EQ(Sampler::make({.presence_penalty = 1}, 4).value().sample(logits, 0), 1);
  std::vector<float> probabilities(4);
  Sampler::make({.temperature = 1, .top_k = 2}, 4).value().distribution(logits, probabilities);
  EXPECT_EQ(probabilities, (std::vector<float>{0, 0.5, 0.5, 0}));
}

TEST(Sampler, KeepsTheBestTokenWhateverIsCutOff) {
  const std::vector<float> logits = {0, 1, 0.999F, -3};
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 5, .top_p = 0},
        SamplingOptions{.temperature = 5, .min_p = 1}, SamplingOptions{.temperature = 1e-30},
        SamplingOptions{.temperature = 5, .top_k = 1}}) {
    Sampler sampler = Sampler::make(options, 4).value();
    for (int position = 0; position < 20; ++position)
      EXPECT_EQ(sampler.sample(logits, position), 1);
  }
}

TEST(Sampler, SurvivesLogitsThatAreNotNumbers) {
  const auto nan = static_cast<float>(kNan);
  const auto infinity = static_cast<float>(kInfinity);
  for (const std::vector<float>& logits : {std::vector<float>{nan, 1, 0},
                                           {nan, nan, nan},
                                           {-infinity, -infinity, -infinity},
                                           {infinity, infinity, 0},
                                           {-infinity, infinity, nan}}) {
    for (const double temperature : {0.0, 1.0}) {
      SamplingOptions options{.temperature = temperature, .top_p = 0.9, .repetition_penalty = 1.2};
      Sampler sampler = Sampler::make(options, 3).value();
      const TokenId token = sampler.sample(logits, 0);
      EXPECT_GE(token, 0);
      EXPECT_LT(token, 3);
    }
  }
  Sampler sampler = Sampler::make({.temperature = 1}, 3).value();
  for (int position = 0; position < 50; ++position) {
    EXPECT_NE(sampler.sample(std::vector<float>{nan, 1, 0}, position), 0);
  }
}

TEST(SamplingOptions, OutsideTheirRangeAreErrorsThatNameThem) {
  const std::pair<SamplingOptions, const char*> bad[] = {
      {{.temperature = -0.1}, "temperature is out of range: expected 0 to 100, got -0.1"},
      {{.temperature = kNan}, "temperature"},
      {{.temperature = kInfinity}, "temperature"},
      {{.top_k = -1}, "top-k"},
      {{.top_p = 1.0001}, "top-p is out of range: expected 0 to 1, got 1.0001"},
      {{.top_p = kNan}, "top-p"},
      {{.min_p = -1}, "min-p"},
      {{.repetition_penalty = 0}, "repetition penalty"},
      {{.presence_penalty = kInfinity}, "presence penalty"},
      {{.frequency_penalty = 101}, "frequency penalty"},
      {{.logit_bias = {{50, 1}}},
       "token of a logit bias is out of range: expected 0 to 49, got 50"},
      {{.logit_bias = {{-1, 1}}}, "token of a logit bias"},
      {{.logit_bias = {{1, static_cast<float>(kNan)}}}, "logit bias of token 1"},
      {{.logit_bias = {{1, 1e9F}}}, "logit bias of token 1"},
  };
  for (const auto& [options, message] : bad) {
    const auto made = Sampler::make(options, 50);
    ASSERT_FALSE(made.ok()) << message;
    EXPECT_NE(made.error().message().find(message), std::string::npos) << made.error().message();
  }
  EXPECT_TRUE(check({.temperature = 100, .top_k = INT64_MAX, .top_p = 0, .min_p = 1}, 50).ok());
}

TEST(SamplingOptions, NeedLogitsOnlyWhereSomethingMayChangeTheBestToken) {
  EXPECT_TRUE(is_plain_greedy({}));
  EXPECT_TRUE(is_plain_greedy({.top_k = 5, .top_p = 0.5, .min_p = 0.5, .seed = 1}));
  EXPECT_FALSE(is_plain_greedy({.temperature = 0.1}));
  EXPECT_FALSE(is_plain_greedy({.repetition_penalty = 1.1}));
  EXPECT_FALSE(is_plain_greedy({.presence_penalty = 0.1}));
  EXPECT_FALSE(is_plain_greedy({.frequency_penalty = 0.1}));
  EXPECT_FALSE(is_plain_greedy({.logit_bias = {{0, 1}}}));
}

}  // namespace
}  // namespace espalier::decode
