#include "espalier/decode/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/decode/fake_target.h"

namespace espalier::decode {
namespace {

using ::testing::ElementsAreArray;

constexpr int64_t kVocab = 11;
constexpr int64_t kContext = 1000;

std::vector<TokenId> text_of(size_t length) {
  std::vector<TokenId> tokens(length);
  for (size_t i = 0; i < length; ++i) tokens[i] = static_cast<TokenId>((i * i + 3) % kVocab);
  return tokens;
}

// A fake target with everything that decoding it needs.
class PlainDecoding : public ::testing::Test {
 protected:
  void make(int64_t rows) {
    target = std::make_unique<FakeTarget>(kVocab, kContext, rows);
    windows = std::make_unique<ChainWindows>(rows);
    speculator = std::make_unique<Speculator>(std::vector<std::unique_ptr<Drafter>>(), rows);
    ASSERT_TRUE(target->reserve(kContext).ok());
  }
  Timeline timeline() { return {*target, *windows, cancelled, *speculator}; }
  bool prefill(std::span<const TokenId> tokens, HeadKind head = HeadKind::kArgmax) {
    return run_chain(timeline(), tokens, HeadRows::kLast, head);
  }
  Result<FinishReason> answer(const SamplingOptions& options, const GenerateLimits& limits) {
    answered.clear();
    Sampler sampler = Sampler::make(options, kVocab).value();
    const HeadKind head = is_plain_greedy(options) ? HeadKind::kArgmax : HeadKind::kLogits;
    return generate(timeline(), sampler, head, limits, [this](TokenId token, auto logits) {
      answered.push_back(token);
      logit_count = logits.size();
      return !stop_after || answered.size() < *stop_after;
    });
  }

  std::unique_ptr<FakeTarget> target;
  std::unique_ptr<ChainWindows> windows;
  std::unique_ptr<Speculator> speculator;
  std::atomic<bool> cancelled = false;
  std::vector<TokenId> answered;
  size_t logit_count = 0;
  std::optional<size_t> stop_after;
};

TEST_F(PlainDecoding, PrefillFillsWholeWindows) {
  for (const int64_t rows : {1, 7, 32, 64}) {
    for (const size_t length : {1, 6, 7, 8, 64, 65, 200}) {
      make(rows);
      const std::vector<TokenId> text = text_of(length);
      ASSERT_TRUE(prefill(text));
      EXPECT_THAT(target->committed, ElementsAreArray(text));
      EXPECT_EQ(target->calls, (static_cast<int64_t>(length) + rows - 1) / rows);
      EXPECT_EQ(target->rows, static_cast<int64_t>(length));
      EXPECT_EQ(target->argmax(0), FakeTarget::next(text, kVocab));
    }
  }
}

TEST_F(PlainDecoding, EveryRowOfAChainCanBeLookedAt) {
  make(7);
  const std::vector<TokenId> text = text_of(20);
  int64_t seen = 0;
  ASSERT_TRUE(
      run_chain(timeline(), text, HeadRows::kAll, HeadKind::kLogits,
                [&](int64_t first_row, int64_t row_count) {
                  EXPECT_EQ(first_row, seen);
                  for (int64_t row = 0; row < row_count; ++row, ++seen) {
                    const std::vector<TokenId> prefix(text.begin(), text.begin() + seen + 1);
                    const auto logits = target->logits(row);
                    EXPECT_EQ(logits[static_cast<size_t>(FakeTarget::next(prefix, kVocab))], 0);
                  }
                }));
  EXPECT_EQ(seen, 20);
}

TEST_F(PlainDecoding, GreedyAnswersAreThoseOfTheModelForEveryWindow) {
  std::vector<TokenId> expected = text_of(10);
  for (int i = 0; i < 25; ++i) expected.push_back(FakeTarget::next(expected, kVocab));
  expected.erase(expected.begin(), expected.begin() + 10);
  for (const int64_t rows : {1, 7, 64}) {
    make(rows);
    ASSERT_TRUE(prefill(text_of(10)));
    EXPECT_EQ(answer({}, {.max_tokens = 25}).value(), FinishReason::kLength);
    EXPECT_THAT(answered, ElementsAreArray(expected));
    EXPECT_EQ(target->committed_length(), 10 + 24);  // the last token is not run
    EXPECT_EQ(logit_count, 0U);
  }
}

TEST_F(PlainDecoding, AnEndTokenEndsTheAnswerAndIsItsLastToken) {
  make(4);
  ASSERT_TRUE(prefill(text_of(3)));
  const TokenId end = FakeTarget::next(text_of(3), kVocab);
  const std::vector<TokenId> end_tokens = {-1, end};
  EXPECT_EQ(answer({}, {.max_tokens = 5, .end_tokens = end_tokens}).value(), FinishReason::kStop);
  EXPECT_THAT(answered, ElementsAreArray({end}));
}

TEST_F(PlainDecoding, TheReceiverCanStopTheAnswer) {
  make(4);
  stop_after = 3;
  ASSERT_TRUE(prefill(text_of(3)));
  EXPECT_EQ(answer({}, {.max_tokens = 50}).value(), FinishReason::kStop);
  EXPECT_EQ(answered.size(), 3U);
}

TEST_F(PlainDecoding, ACancelTakesEffectBeforeTheNextCall) {
  make(4);
  ASSERT_TRUE(run_chain(timeline(), text_of(3), HeadRows::kLast, HeadKind::kArgmax));
  const int64_t calls = target->calls;
  cancelled = true;
  EXPECT_EQ(answer({}, {.max_tokens = 50}).value(), FinishReason::kCancelled);
  EXPECT_EQ(answered.size(), 1U);  // the head was there already
  EXPECT_EQ(target->calls, calls);
}

TEST_F(PlainDecoding, ACancelledPrefillKeepsTheWindowsThatRan) {
  make(4);
  const std::vector<TokenId> text = text_of(10);
  EXPECT_FALSE(run_chain(timeline(), text, HeadRows::kLast, HeadKind::kArgmax,
                         [&](int64_t, int64_t) { cancelled = true; }));
  EXPECT_THAT(target->committed, ElementsAreArray(std::span(text).first(4)));
}

TEST_F(PlainDecoding, ATargetThatCannotGrowEndsTheAnswerWithItsError) {
  make(4);
  ASSERT_TRUE(prefill(text_of(3)));
  target->reserve_limit = 5;
  EXPECT_EQ(answer({}, {.max_tokens = 50}).error().what, "out of memory");
  EXPECT_EQ(answered.size(), 3U);
}

TEST_F(PlainDecoding, SampledAnswersDependOnTheSeedAndNotOnTheWindow) {
  SamplingOptions options{.temperature = 2.0, .seed = 5};
  std::vector<TokenId> first;
  for (const int64_t rows : {1, 7, 64}) {
    make(rows);
    ASSERT_TRUE(prefill(text_of(10), HeadKind::kLogits));
    ASSERT_TRUE(answer(options, {.max_tokens = 40}).ok());
    EXPECT_EQ(logit_count, static_cast<size_t>(kVocab));
    if (first.empty()) first = answered;
    EXPECT_EQ(answered, first);
  }
  options.seed = 6;
  make(1);
  ASSERT_TRUE(prefill(text_of(10), HeadKind::kLogits));
  ASSERT_TRUE(answer(options, {.max_tokens = 40}).ok());
  EXPECT_NE(answered, first);
}

TEST_F(PlainDecoding, PenaltiesSeeTheTokensOfTheAnswer) {
  // Each token of the answer is banned for the rest of it: eleven answers are a permutation of the
  // vocabulary.
  make(1);
  ASSERT_TRUE(prefill(text_of(3), HeadKind::kLogits));
  ASSERT_TRUE(answer({.presence_penalty = 100}, {.max_tokens = kVocab}).ok());
  std::ranges::sort(answered);
  EXPECT_THAT(answered, ElementsAreArray({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

}  // namespace
}  // namespace espalier::decode
