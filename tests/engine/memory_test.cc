// No memory, at any point: an error, never the end of the process, and the session goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/golden_models.h"
#include "tests/support/failing_allocations.h"

namespace espalier::engine {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// A model whose second bucket is far larger than its first.
std::unique_ptr<const Engine> long_engine(const std::string& unit) {
  formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory("llama_tied")).value();
  checkpoint.config["max_position_embeddings"] = 4000;
  return Engine::load(std::move(checkpoint), {.unit = unit, .compile = {.threads = 1}}).value();
}

constexpr size_t kLarge = 20'000;  // bytes; the KV of a layer in the second bucket takes more

TEST(Memory, AnAnswerThatOutgrowsItIsKeptWithTheError) {
  for (const char* unit : {"cpu", "reference"}) {
    const auto engine = long_engine(unit);
    const auto session = make_session(*engine);
    const std::vector<TokenId> prompt = some_text(500);
    const GenerateOptions options{.max_tokens = 40, .ignore_end_tokens = true};
    std::vector<TokenId> heard;
    const auto listen = [&](const AnswerToken& token) {
      heard.push_back(token.id);
      return true;
    };
    Answer partial;
    {
      const FailLargeAllocations failing(kLarge);
      auto answer = session->generate(prompt, options, listen);
      ASSERT_TRUE(answer.ok()) << unit << answer.error().message();
      partial = std::move(answer).value();
    }
    EXPECT_EQ(partial.finish_reason, decode::FinishReason::kError);
    ASSERT_TRUE(partial.error.has_value());
    EXPECT_THAT(partial.error->message(), HasSubstr("no memory"));
    EXPECT_EQ(partial.tokens.size(), 13U);  // 512 positions, and the token that did not fit
    EXPECT_EQ(partial.tokens, heard);
    EXPECT_EQ(session->tokens().size(), 512U);
    // With memory the session goes on, and says the same.
    const Answer whole = session->generate(prompt, options, keep_going).value();
    EXPECT_EQ(whole.tokens.size(), 40U);
    EXPECT_FALSE(whole.error.has_value());
    EXPECT_THAT(std::span(whole.tokens).first(13), ElementsAreArray(partial.tokens));
  }
}

TEST(Memory, AScoreThatDoesNotFitLeavesAnEmptySession) {
  const auto engine = long_engine("cpu");
  const auto session = make_session(*engine);
  const std::vector<TokenId> text = some_text(600);
  ASSERT_TRUE(session->score(std::span(text).first(100)).ok());
  {
    const FailLargeAllocations failing(kLarge);
    EXPECT_FALSE(session->score(text).ok());
  }
  EXPECT_EQ(session->tokens().size(), 0U);
  const GenerateOptions options{.max_tokens = 5, .ignore_end_tokens = true};
  const Answer after = session->generate(text, options, keep_going).value();
  EXPECT_EQ(after.reused_tokens, 0);
  EXPECT_EQ(after.tokens, make_session(*engine)->generate(text, options, keep_going)->tokens);
}

TEST(Memory, EachAllocationOfASessionMayFail) {
  const auto engine = load_golden("lfm2_mixed", {.window = 8, .compile = {.threads = 2}});
  const std::vector<TokenId> prompt = some_text(20);
  const GenerateOptions options{.sampling = {.temperature = 1, .seed = 3},
                                .max_tokens = 3,
                                .logprobs = 2,
                                .ignore_end_tokens = true};
  const auto work = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto session, Session::create(*engine));
    ASSIGN_OR_RETURN(const Score score, session->score(prompt));
    ASSIGN_OR_RETURN(const Answer answer, session->generate(prompt, options, keep_going));
    return answer.error ? Status(*answer.error) : Status(Ok{});
  };
  int failures = 0;
  for (int64_t count = 0;; ++count) {
    const FailOneAllocation failing(count);
    const Status done = work();
    if (!failing.has_failed()) {
      EXPECT_TRUE(done.ok());
      break;
    }
    EXPECT_FALSE(done.ok()) << count;
    ++failures;
  }
  EXPECT_GT(failures, 20);
}

// Of those that a model's size decides; the JSON library ends the process where it gets no memory
// for a name. A load may also go on without, as std::stable_sort does.
constexpr size_t kDecidedByTheModel = 512;  // bytes

TEST(Memory, EachLargerAllocationOfALoadMayFail) {
  for (const char* unit : {"cpu", "reference"}) {
    int failures = 0;
    for (int64_t count = 0;; ++count) {
      formats::Checkpoint checkpoint =
          formats::open_checkpoint(golden_directory("lfm2_mixed")).value();
      const FailOneAllocation failing(count, kDecidedByTheModel);
      const auto engine =
          Engine::load(std::move(checkpoint), {.unit = unit, .compile = {.threads = 2}});
      if (!failing.has_failed()) {
        EXPECT_TRUE(engine.ok());
        break;
      }
      failures += engine.ok() ? 0 : 1;
    }
    EXPECT_GT(failures, 20);
  }
}

}  // namespace
}  // namespace espalier::engine
