// Speculation over real programs: whatever guesses, window and mode, the tokens are those of plain
// decoding, and so is the state that is left behind.
#include <gtest/gtest.h>

#include "espalier/decode/ngram_drafter.h"
#include "espalier/decode/step.h"
#include "espalier/engine/executable_target.h"
#include "tests/engine/golden_models.h"

namespace espalier::engine {
namespace {

using decode::SpeculationMode;
using decode::SpeculationOptions;

constexpr const char* kNano = ESPALIER_SOURCE_DIR "/models/nano";
constexpr const char* kNanoDrafter = ESPALIER_SOURCE_DIR "/models/nano-drafter";

const std::vector<decode::SamplingOptions> kSamplings = {
    {},
    {.temperature = 1, .seed = 3},
    {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = 4},
    {.temperature = 1.2, .min_p = 0.05, .repetition_penalty = 1.2, .seed = 5},
    {.temperature = 0, .presence_penalty = 0.5, .frequency_penalty = 0.3},
};

// A prompt with a passage that comes twice.
std::vector<TokenId> repeating_text(size_t length) {
  std::vector<TokenId> text = some_text(length);
  const auto half = static_cast<std::ptrdiff_t>(length / 2);
  std::copy_n(text.begin(), half, text.begin() + half);
  return text;
}

Answer answer(Session& session, std::span<const TokenId> prompt,
              const decode::SamplingOptions& sampling, const SpeculationOptions& speculation) {
  const GenerateOptions options{.sampling = sampling,
                                .max_tokens = 48,
                                .ignore_end_tokens = true,
                                .speculation = speculation};
  auto found = session.generate(prompt, options, keep_going);
  EXPECT_TRUE(found.ok()) << found.error().message();
  return std::move(found).value();
}

class Lossless : public ::testing::TestWithParam<std::string> {};

TEST_P(Lossless, TokensAreThoseOfPlainDecoding) {
  int64_t accepted = 0;
  std::vector<std::vector<TokenId>> plain;
  for (const int64_t window : {64, 16, 5}) {
    const auto engine = load_golden(GetParam(), {.window = window});
    const auto session = make_session(*engine);
    for (size_t i = 0; i < kSamplings.size(); ++i) {
      const auto prompt = repeating_text(20 + 13 * i);
      const auto alone = answer(*session, prompt, kSamplings[i], {}).tokens;
      if (plain.size() == i) plain.push_back(alone);
      EXPECT_EQ(alone, plain[i]);
      for (const auto mode :
           {SpeculationMode::kChain, SpeculationMode::kTree, SpeculationMode::kAuto}) {
        const Answer guessed = answer(*session, prompt, kSamplings[i], {mode, 0});
        EXPECT_EQ(guessed.tokens, plain[i]);
        EXPECT_EQ(guessed.speculation.cycles + guessed.speculation.accepted_nodes + 1, 48);
        accepted += guessed.speculation.accepted_nodes;
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Lossless, ::testing::Values("lfm2_mixed", "llama_tied"),
                         [](const auto& info) { return info.param; });

TEST(SpeculationWithDrafter, TokensAreThoseOfPlainDecoding) {
  const auto engine = Engine::load(kNano, {.context = 512, .drafter = kNanoDrafter}).value();
  const auto plain = make_session(*engine), guessing = make_session(*engine);
  int64_t accepted = 0;
  for (size_t i = 0; i < kSamplings.size(); ++i) {
    const auto prompt = repeating_text(30 + 17 * i);
    const auto expected = answer(*plain, prompt, kSamplings[i], {}).tokens;
    for (const auto mode :
         {SpeculationMode::kChain, SpeculationMode::kTree, SpeculationMode::kAuto}) {
      for (const int64_t draft_tokens : {3, 16, 63}) {
        const Answer guessed = answer(*guessing, prompt, kSamplings[i], {mode, draft_tokens});
        EXPECT_EQ(guessed.tokens, expected);
        accepted += guessed.speculation.accepted_nodes;
      }
    }
  }
  EXPECT_GT(accepted, 0);
}

// A drafter's context follows the session through turns, other texts, and turns without it.
TEST(SpeculationWithDrafter, GuessesAreAsGoodInALaterTurn) {
  const auto engine = Engine::load(kNano, {.context = 512, .drafter = kNanoDrafter}).value();
  const SpeculationOptions tree{SpeculationMode::kTree, 16};
  std::vector<TokenId> text = some_text(20);
  const auto session = make_session(*engine);
  for (const SpeculationOptions& mode : {tree, SpeculationOptions{}, tree, tree}) {
    const auto fresh = make_session(*engine);
    const Answer expected = answer(*fresh, text, {}, mode);
    const Answer found = answer(*session, text, {}, mode);
    EXPECT_EQ(found.tokens, expected.tokens);
    text.insert(text.end(), found.tokens.begin(), found.tokens.end());
    const auto more = some_text(5, static_cast<int>(text.size()));
    text.insert(text.end(), more.begin(), more.end());
    (void)answer(*session, some_text(7, 3), {}, mode);
  }
}

TEST(SpeculationWithDrafter, AnAnswerEndsAtTheEndOfTheContext) {
  const auto engine = Engine::load(kNano, {.context = 64, .drafter = kNanoDrafter}).value();
  for (const size_t length : {1, 2, 3, 40, 60, 63, 64}) {
    const auto session = make_session(*engine);
    const auto prompt = some_text(length);
    GenerateOptions options{.ignore_end_tokens = true};
    const auto plain = session->generate(prompt, options, keep_going).value();
    options.speculation = {SpeculationMode::kTree, 63};
    const auto guessed = session->generate(prompt, options, keep_going).value();
    EXPECT_EQ(guessed.tokens, plain.tokens);
    EXPECT_EQ(guessed.tokens.size(), 64 - length);
  }
}

// What is left in a state after trees of guesses is, bit for bit, what plain decoding leaves.
TEST(Speculation, LeavesTheStateOfPlainDecoding) {
  for (const char* name : {"lfm2_mixed", "llama_tied"}) {
    const auto engine = load_golden(name);
    std::vector<std::vector<std::byte>> states;
    for (const auto mode : {SpeculationMode::kOff, SpeculationMode::kTree}) {
      auto target = ExecutableTarget::create(*engine).value();
      const decode::ChainWindows windows(target->max_rows());
      const std::atomic<bool> cancelled = false;
      std::vector<std::unique_ptr<decode::Drafter>> drafters;
      drafters.push_back(std::make_unique<decode::NgramDrafter>());
      decode::Speculator speculator(std::move(drafters), target->max_rows());
      const auto prompt = repeating_text(60);
      ASSERT_TRUE(target->reserve(120).ok());
      ASSERT_TRUE(speculator.begin({mode, 40}, prompt, 120).ok());
      const decode::Timeline timeline{*target, windows, cancelled, speculator};
      ASSERT_TRUE(
          decode::run_chain(timeline, prompt, decode::HeadRows::kLast, decode::HeadKind::kArgmax));
      auto sampler = decode::Sampler::make({}, target->vocab_size()).value();
      ASSERT_TRUE(decode::generate(timeline, sampler, decode::HeadKind::kArgmax, {.max_tokens = 50},
                                   [](TokenId, auto) { return true; })
                      .ok());
      states.push_back(engine->executable().export_state(target->state()));
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

}  // namespace
}  // namespace espalier::engine
