#include "espalier/decode/speculation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/decode/ngram_drafter.h"
#include "espalier/decode/pending_rows.h"
#include "espalier/decode/step.h"
#include "tests/decode/fake_target.h"
#include "tests/decode/guessing_drafter.h"

namespace espalier::decode {
namespace {

constexpr int64_t kVocab = 11;
constexpr int64_t kContext = 2000;

std::vector<TokenId> prompt_of(size_t length) {
  std::vector<TokenId> tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = static_cast<TokenId>((i * i + 3) % kVocab);
  return tokens;
}

struct Drafters {
  std::vector<std::unique_ptr<Drafter>> list;
  GuessingDrafter* guessing = nullptr;
};

Drafters drafters(double right_share, uint64_t seed = 1) {
  Drafters made;
  auto guessing = std::make_unique<GuessingDrafter>(kVocab, right_share, seed);
  made.guessing = guessing.get();
  made.list.push_back(std::make_unique<NgramDrafter>());
  made.list.push_back(std::move(guessing));
  return made;
}

struct Answered {
  std::vector<TokenId> tokens, committed;
  FinishReason reason{};
  SpeculationStatistics statistics;
  int64_t calls = 0;
};

struct Case {
  SamplingOptions sampling = {};
  SpeculationOptions speculation = {};
  int64_t window = 64;
  double right_share = 0.7;
  int64_t max_tokens = 60;
  std::vector<TokenId> end_tokens = {};
  size_t stop_after = SIZE_MAX;
  int64_t block = 1;  // of positions that the target commits at once
};

Answered answer(const Case& wanted) {
  FakeTarget unit(kVocab, kContext, wanted.window);
  unit.commit_block = wanted.block;
  PendingRows target(unit, wanted.block);
  const ChainWindows windows(wanted.window);
  const std::atomic<bool> cancelled = false;
  Speculator speculator(std::move(drafters(wanted.right_share).list), wanted.window);
  const Timeline timeline{target, windows, cancelled, speculator};
  const std::vector<TokenId> prompt = prompt_of(12);
  const HeadKind head = is_plain_greedy(wanted.sampling) ? HeadKind::kArgmax : HeadKind::kLogits;
  EXPECT_TRUE(target.reserve(static_cast<int64_t>(prompt.size())).ok());
  EXPECT_TRUE(run_chain(timeline, prompt, HeadRows::kLast, head));
  const int64_t prefill_calls = unit.calls;
  Sampler sampler = Sampler::make(wanted.sampling, kVocab).value();
  sampler.observe_prompt(prompt);
  EXPECT_TRUE(speculator.begin(wanted.speculation, prompt, kContext).ok());
  Answered result;
  const GenerateLimits limits{.max_tokens = wanted.max_tokens, .end_tokens = wanted.end_tokens};
  result.reason =
      generate(timeline, sampler, head, limits, [&](TokenId token, std::span<const float>) {
        result.tokens.push_back(token);
        return result.tokens.size() < wanted.stop_after;
      }).value();
  result.committed = unit.committed;
  result.statistics = speculator.statistics();
  result.calls = unit.calls - prefill_calls;
  return result;
}

const SamplingOptions kSamplings[] = {
    {},
    {.temperature = 1.5, .seed = 3},
    {.temperature = 3, .top_k = 5, .seed = 4},
    {.temperature = 2, .top_p = 0.8, .repetition_penalty = 1.3, .seed = 5},
    {.temperature = 1, .presence_penalty = 2, .frequency_penalty = 1, .seed = 6},
    {.temperature = 0, .repetition_penalty = 1.5},
};

TEST(Speculation, NeverChangesTheAnswer) {
  int64_t accepted = 0;
  for (const SamplingOptions& sampling : kSamplings) {
    const Answered plain = answer({.sampling = sampling});
    EXPECT_EQ(plain.statistics.draft_nodes, 0);
    for (const int64_t window : {2, 16, 32, 64}) {
      for (const auto mode :
           {SpeculationMode::kChain, SpeculationMode::kTree, SpeculationMode::kAuto}) {
        for (const int64_t draft_tokens : {0, 1, 5, 63}) {
          const Answered guessed =
              answer({.sampling = sampling, .speculation = {mode, draft_tokens}, .window = window});
          ASSERT_EQ(guessed.tokens, plain.tokens);
          ASSERT_EQ(guessed.committed, plain.committed);
          ASSERT_EQ(guessed.reason, plain.reason);
          accepted += guessed.statistics.accepted_nodes;
        }
      }
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Speculation, EndsInsideATreeWhereThePlainAnswerEnds) {
  const Answered whole = answer({});
  for (size_t length = 1; length < 20; ++length) {
    for (const int way : {0, 1, 2}) {
      Case wanted;
      if (way == 0) wanted.max_tokens = static_cast<int64_t>(length);
      if (way == 1) wanted.stop_after = length;
      if (way == 2) wanted.end_tokens = {whole.tokens[length - 1]};
      const Answered plain = answer(wanted);
      wanted.speculation = {SpeculationMode::kTree, 40};
      wanted.right_share = 1;
      const Answered guessed = answer(wanted);
      EXPECT_EQ(guessed.tokens, plain.tokens);
      EXPECT_EQ(guessed.committed, plain.committed);
      EXPECT_EQ(guessed.reason, plain.reason);
      EXPECT_EQ(guessed.statistics.cycles + guessed.statistics.accepted_nodes + 1,
                static_cast<int64_t>(guessed.tokens.size()));
    }
  }
}

// A unit that can only write aligned blocks of 32, as the Neural Engine.
TEST(Speculation, NeverChangesTheAnswerOfATargetThatWritesBlocks) {
  for (const SamplingOptions& sampling : kSamplings) {
    const Answered plain = answer({.sampling = sampling, .max_tokens = 200});
    for (const int64_t window : {40, 64}) {
      for (const auto mode : {SpeculationMode::kOff, SpeculationMode::kChain,
                              SpeculationMode::kTree, SpeculationMode::kAuto}) {
        const Answered guessed = answer({.sampling = sampling,
                                         .speculation = {mode, 63},
                                         .window = window,
                                         .max_tokens = 200,
                                         .block = 32});
        ASSERT_EQ(guessed.tokens, plain.tokens);
        const auto whole = plain.committed.size() / 32 * 32;
        ASSERT_EQ(guessed.committed,
                  std::vector(plain.committed.begin(),
                              plain.committed.begin() + static_cast<std::ptrdiff_t>(whole)));
        if (mode == SpeculationMode::kChain || mode == SpeculationMode::kTree) {
          ASSERT_GT(guessed.statistics.accepted_nodes, 0);
        }
      }
    }
  }
}

TEST(Speculation, CountsItsCycles) {
  const Answered guessed = answer({.speculation = {SpeculationMode::kTree, 20}, .right_share = 1});
  const SpeculationStatistics& statistics = guessed.statistics;
  EXPECT_EQ(statistics.cycles, guessed.calls);
  EXPECT_EQ(statistics.cycles + statistics.accepted_nodes + 1, 60);  // the first is prefill's
  EXPECT_GT(statistics.tokens_per_cycle(), 1.5);
  int64_t cycles = 0, accepted = 0;
  for (size_t depth = 0; depth < SpeculationStatistics::kDepths; ++depth) {
    cycles += statistics.accepted_depths[depth];
    accepted += static_cast<int64_t>(depth) * statistics.accepted_depths[depth];
  }
  EXPECT_EQ(cycles, statistics.cycles);
  EXPECT_EQ(accepted, statistics.accepted_nodes);
}

TEST(Speculation, ALargerTreeBeginsWithTheSmallerOne) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Drafters both = drafters(0.5, seed);
    const std::vector<TokenId> prompt = prompt_of(12 + seed);
    std::vector<Drafter*> list;
    for (const auto& drafter : both.list) {
      ASSERT_TRUE(drafter->begin(prompt, kContext).ok());
      list.push_back(drafter.get());
    }
    OfferQueue offers(2000);
    DraftTree large(64);
    large.reset(prompt.back());
    grow_tree(list, TreeShape::kTree, 63, 30, offers, large);
    for (int64_t nodes = 0; nodes < large.size(); ++nodes) {
      DraftTree small(64);
      small.reset(prompt.back());
      grow_tree(list, TreeShape::kTree, nodes, 30, offers, small);
      ASSERT_EQ(small.size(), nodes + 1);
      for (size_t i = 0; i < static_cast<size_t>(small.size()); ++i) {
        ASSERT_EQ(small.tokens()[i], large.tokens()[i]);
        ASSERT_EQ(small.parents()[i], large.parents()[i]);
      }
    }
    for (size_t i = 1; i < static_cast<size_t>(large.size()); ++i) {
      const auto parent = static_cast<size_t>(large.parents()[i]);
      ASSERT_LT(parent, i);
      ASSERT_LE(large.log_probabilities()[i], large.log_probabilities()[parent]);
      ASSERT_LE(large.log_probabilities()[i], large.log_probabilities()[i - 1]);
      ASSERT_EQ(large.child(large.parents()[i], large.tokens()[i]), static_cast<int32_t>(i));
    }
  }
}

TEST(Speculation, AChainHasNoBranches) {
  Speculator speculator(std::move(drafters(0.8).list), 64);
  ASSERT_TRUE(speculator.begin({SpeculationMode::kChain, 8}, prompt_of(12), kContext).ok());
  speculator.append(3);
  const DraftTree& tree = speculator.propose(100, 64);
  for (int32_t node = 1; node < tree.size(); ++node) {
    EXPECT_EQ(tree.parents()[static_cast<size_t>(node)], node - 1);
  }
  EXPECT_LE(tree.size(), 9);
}

TEST(Speculation, NodesAreNoDeeperThanTheAnswerMayGoOn) {
  Speculator speculator(std::move(drafters(1).list), 64);
  ASSERT_TRUE(speculator.begin({SpeculationMode::kTree, 63}, prompt_of(12), kContext).ok());
  speculator.append(3);
  for (const int64_t depth : {0, 1, 2, 5}) {
    (void)speculator.propose(depth, 64);
    EXPECT_LE(speculator.depth(), depth);
    EXPECT_EQ(speculator.row_count() == 1, depth == 0);
  }
}

// A text that repeats itself, so that the n-gram drafter is sure of what comes.
class Budget : public ::testing::Test {
 protected:
  void begin(double one_row_ms, double ms_of_each_further_row) {
    std::vector<TokenId> text;
    for (int i = 0; i < 60; ++i) text.push_back(static_cast<TokenId>(i % 7));
    std::vector<std::unique_ptr<Drafter>> list;
    list.push_back(std::make_unique<NgramDrafter>());
    speculator = std::make_unique<Speculator>(std::move(list), 64);
    ASSERT_TRUE(speculator->begin({SpeculationMode::kAuto, 0}, text, kContext).ok());
    speculator->append(static_cast<TokenId>(60 % 7));
    for (int cycle = 0, last = 60; cycle < 20; ++cycle) {
      (void)speculator->propose(50, 64);
      const auto rows = static_cast<double>(speculator->row_count());
      std::vector<TokenId> chosen;  // the text goes on as it did
      for (int64_t i = 0; i <= speculator->depth(); ++i) {
        chosen.push_back(static_cast<TokenId>(++last % 7));
        speculator->append(chosen.back());
      }
      speculator->learn(chosen, one_row_ms + (rows - 1) * ms_of_each_further_row, 0);
    }
  }
  std::unique_ptr<Speculator> speculator;
};

TEST_F(Budget, TreesAreLargeWhereRowsCostNothing) {
  begin(10, 0.01);
  (void)speculator->propose(50, 64);
  EXPECT_GT(speculator->row_count(), 10);
}

TEST_F(Budget, SpeculationTurnsItselfOffWhereRowsCostAsMuchAsCalls) {
  begin(10, 10);
  (void)speculator->propose(50, 64);
  EXPECT_EQ(speculator->row_count(), 1);
}

TEST_F(Budget, GuessingRestsWhereItTakesLongerThanItGains) {
  begin(10, 0.01);
  int64_t rows = 0, cycles = 0;
  for (; cycles < 200; ++cycles) {
    speculator->append(static_cast<TokenId>(cycles % 5));  // never what was guessed
    (void)speculator->propose(50, 64);
    rows += speculator->row_count() - 1;
    const TokenId chosen = 6;
    speculator->learn(std::span(&chosen, 1), speculator->row_count() > 1 ? 40 : 10, 0);
  }
  EXPECT_LT(rows, 40 * cycles / 4);
  EXPECT_THAT(speculator->explain(), ::testing::HasSubstr("gain"));
}

TEST(CallCosts, KnowWhatTheyWereTold) {
  CallCosts costs(64);
  costs.learn(1, 4);
  costs.learn(33, 8);
  EXPECT_DOUBLE_EQ(costs.call_ms(1), 4);
  EXPECT_DOUBLE_EQ(costs.call_ms(33), 8);
  EXPECT_DOUBLE_EQ(costs.call_ms(17), 6);
  EXPECT_GT(costs.call_ms(64), 8);
  for (int i = 0; i < 100; ++i) costs.learn(1, 5);
  EXPECT_NEAR(costs.call_ms(1), 5, 0.01);
}

TEST(CallCosts, BeginWithWhatAnEarlierProcessMeasured) {
  CallCosts earlier(8), costs(8), others(16);
  earlier.learn(1, 4);
  earlier.learn(5, 6);
  costs.adopt(earlier.measured_ms());
  EXPECT_DOUBLE_EQ(costs.call_ms(1), 4);
  EXPECT_DOUBLE_EQ(costs.call_ms(3), 5);
  others.adopt(earlier.measured_ms());
  EXPECT_DOUBLE_EQ(others.call_ms(1), 1);
}

TEST(CallCosts, OneSlowCallIsNoRule) {
  CallCosts costs(64);
  for (int i = 0; i < 10; ++i) costs.learn(8, 5);
  costs.learn(8, 500);
  EXPECT_LT(costs.call_ms(8), 6);
}

TEST(NgramDrafter, LearnsHowFarItsGuessesCanBeTrusted) {
  NgramDrafter drafter;
  const float before = drafter.probability(5, 0);
  std::vector<TokenId> text = {1, 2, 3, 4, 5, 9, 1, 2, 3, 4, 5};
  ASSERT_TRUE(drafter.begin(text, 20).ok());
  OfferQueue offers(100);
  drafter.offer_first(0, offers);
  const Offer best = offers.pop();
  EXPECT_EQ(best.token, 9);
  EXPECT_FLOAT_EQ(best.log_probability, std::log(before));
  for (int i = 0; i < 50; ++i) drafter.learn(best.proposer.estimate, false);
  EXPECT_LT(drafter.probability(5, 0), 0.5f * before);
}

TEST(NgramDrafter, APeriodGoesOnBeyondTheEndOfTheText) {
  NgramDrafter drafter;
  const std::vector<TokenId> text = {7, 1, 2, 3, 1, 2, 3};
  ASSERT_TRUE(drafter.begin(text, 20).ok());
  OfferQueue offers(1000);
  DraftTree tree(10);
  tree.reset(3);
  Drafter* list[] = {&drafter};
  grow_tree(list, TreeShape::kChain, 8, 8, offers, tree);
  EXPECT_THAT(tree.tokens(), ::testing::ElementsAre(3, 1, 2, 3, 1, 2, 3, 1, 2));
}

}  // namespace
}  // namespace espalier::decode
