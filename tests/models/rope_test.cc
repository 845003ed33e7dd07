// Frequencies are compared with transformers through whole models (tests/conformance); here is what
// those do not reach.
#include "espalier/models/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/shapes.h"

namespace espalier::models {
namespace {

Rope read(const Json& config, const Weights& weights = {}) {
  auto rope = read_rope(config, weights, 8, 10000.0, 64);
  if (!rope.ok()) check_failed(__FILE__, __LINE__, rope.error().message());
  return std::move(rope).value();
}

TEST(Rope, HasAFrequencyForEachPair) {
  const Rope rope = read(Json::object());
  ASSERT_EQ(rope.frequencies.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(rope.frequencies[i], std::pow(10000.0, -2.0 * static_cast<double>(i) / 8), 1e-7);
  }
  EXPECT_EQ(rope.scale, 1.0);
  EXPECT_FALSE(rope.interleaved);
}

TEST(Rope, RotatesThePartOfTheHeadThatAGgufFileSays) {
  EXPECT_EQ(read({{"rope_rotary_dim", 4}}).frequencies.size(), 2u);
  EXPECT_EQ(read({{"rope_rotary_dim", 2}}).frequencies.size(), 1u);
  for (const int64_t bad : {-2, 0, 3, 10}) {
    EXPECT_FALSE(read_rope({{"rope_rotary_dim", bad}}, {}, 8, 10000.0, 64).ok()) << bad;
  }
}

// As transformers 5.24 does it in all of these families; tests/golden/models/llama_partial_rotary.
TEST(Rope, LeavesAPartialFactorAloneWhereNothingIsScaled) {
  const Rope whole = read(Json::object());
  EXPECT_EQ(read({{"partial_rotary_factor", 0.5}}).frequencies, whole.frequencies);
  EXPECT_EQ(read({{"rope_parameters", {{"partial_rotary_factor", 0.25}}}}).frequencies,
            whole.frequencies);
}

TEST(Rope, DividesByTheFactorsOfAGgufFile) {
  const std::vector<float> factors = {1.0f, 2.0f, 4.0f, 8.0f};
  const Weights weights(
      {{"rope_freqs.weight", {Encoding::kF32, {4}, std::as_bytes(std::span(factors))}}}, {});
  const Rope plain = read(Json::object());
  const Rope divided = read(Json::object(), weights);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(divided.frequencies[i], plain.frequencies[i] / factors[i]);
  }
}

TEST(Rope, EndsTheContextWhereTheFrequenciesWouldChange) {
  EXPECT_EQ(read({{"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}}}).context_limit, 64);
  const Json longrope = {{"type", "longrope"},
                         {"short_factor", {1, 1, 1, 1}},
                         {"original_max_position_embeddings", 16}};
  EXPECT_EQ(read({{"rope_scaling", longrope}}).context_limit, 16);
  EXPECT_EQ(read(Json::object()).context_limit, 0);
}

// Each alone would have made a frequency that fp32 cannot hold.
TEST(Rope, RefusesParametersThatMakeNoFrequencies) {
  const auto scaling = [](Json parameters) {
    return Json{{"rope_scaling", std::move(parameters)}};
  };
  const Json bad[] = {
      {{"rope_theta", 1e-60}},
      {{"rope_theta", 1e-45}},  // as GGUF's llama.rope.freq_base, a denormal of fp32
      {{"rope_theta", 1e300}},
      {{"rope_theta", 1e-7}},
      scaling({{"type", "linear"}, {"factor", 1e-40}}),
      scaling({{"type", "linear"}, {"factor", 1e40}}),
      scaling({{"rope_type", "llama3"},
               {"factor", 1e-40},
               {"low_freq_factor", 1},
               {"high_freq_factor", 4}}),
      scaling({{"rope_type", "yarn"}, {"factor", 4}, {"rope_theta", 1}}),
      scaling({{"rope_type", "yarn"}, {"factor", 4}, {"rope_theta", 0.5}}),
      scaling({{"rope_type", "yarn"}, {"factor", 1e-40}}),
      scaling({{"rope_type", "yarn"}, {"beta_fast", 1e-40}}),
      scaling({{"rope_type", "yarn"}, {"attention_factor", 1e40}}),
      scaling({{"rope_type", "yarn"}, {"factor", 4}, {"mscale", 1e308}, {"mscale_all_dim", 1}}),
      scaling({{"rope_type", "yarn"}, {"factor", 4}, {"mscale", -1e3}, {"mscale_all_dim", 1}}),
      scaling({{"type", "longrope"}, {"short_factor", {1, 1, 1, 1e-40}}}),
  };
  for (const Json& config : bad) {
    EXPECT_FALSE(read_rope(config, {}, 8, 10000.0, 64).ok()) << config;
  }
}

TEST(Rope, RefusesFactorsOfAGgufFileThatAreNotNormal) {
  for (const float bad : {1e-45f, 1e-38f, -1.0f, 0.0f, NAN, HUGE_VALF, 3e38f}) {
    const std::vector<float> factors = {1.0f, bad, 1.0f, 1.0f};
    const Weights weights(
        {{"rope_freqs.weight", {Encoding::kF32, {4}, std::as_bytes(std::span(factors))}}}, {});
    EXPECT_FALSE(read_rope(Json::object(), weights, 8, 10000.0, 64).ok()) << bad;
  }
}

TEST(Rope, IsInterleavedWhereTheRowsAreStoredPermuted) {
  EXPECT_TRUE(read({{"rope_interleaved", true}}).interleaved);
}

}  // namespace
}  // namespace espalier::models
