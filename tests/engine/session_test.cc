#include "espalier/engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "espalier/units/registry.h"
#include "tests/engine/golden_models.h"

namespace espalier::engine {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Answer answer_of(Session& session, const std::vector<TokenId>& prompt,
                 const GenerateOptions& options) {
  auto answer = session.generate(prompt, options, keep_going);
  EXPECT_TRUE(answer.ok()) << answer.error().message();
  return std::move(answer).value();
}

TEST(Session, ScoresAsTransformersDoesOnTheReferenceUnit) {
  for (const std::string name : {"llama_tied", "qwen2", "lfm2_mixed"}) {
    const auto engine = load_golden(name, {.unit = "reference", .window = 7});
    for (const Json& sequence : golden_sequences(name)) {
      const std::vector<TokenId> ids = sequence["ids"];
      if (ids.size() < 2) continue;
      const Score score = make_session(*engine)->score(ids).value();
      const std::vector<double> logprobs = sequence["logprobs"];
      ASSERT_EQ(score.logprobs.size(), logprobs.size());
      for (size_t i = 0; i < logprobs.size(); ++i) {
        EXPECT_NEAR(score.logprobs[i], logprobs[i], 1e-4) << name << " " << i;
        EXPECT_EQ(score.best_tokens[i], sequence["top1_ids"][i]) << name << " " << i;
      }
      EXPECT_EQ(score.timings.rows, static_cast<int64_t>(ids.size()) - 1);
      EXPECT_EQ(score.timings.calls, (static_cast<int64_t>(ids.size()) - 1 + 6) / 7);
    }
  }
}

TEST(Session, AnswersTheSameForEveryWindowThreadCountAndKernelSet) {
  std::vector<EngineOptions> choices;
  for (const int64_t window : {1, 7, 32, 64})
    choices.push_back({.window = window, .compile = {.threads = 1}});
  choices.push_back({.window = 33, .compile = {.threads = 2}});
  choices.push_back({.window = 64, .compile = {.threads = 3}});
  for (const std::string& kernels : units::make_unit("cpu").value()->kernel_names()) {
    choices.push_back({.window = 20, .compile = {.threads = 1, .kernels = kernels}});
  }
  const std::vector<TokenId> prompt = some_text(100);
  for (const std::string name : {"llama_biases", "lfm2_mixed"}) {
    std::vector<TokenId> first;
    std::vector<float> first_score;
    for (const EngineOptions& options : choices) {
      const auto engine = load_golden(name, options);
      const auto session = make_session(*engine);
      const Answer answer =
          answer_of(*session, prompt, {.max_tokens = 20, .ignore_end_tokens = true});
      EXPECT_EQ(answer.timings.rows, 100 + 19);
      EXPECT_EQ(answer.timings.calls, (100 + options.window - 1) / options.window + 19);
      const Score score = session->score(prompt).value();
      if (first.empty()) {
        first = answer.tokens;
        first_score = score.logprobs;
      }
      EXPECT_EQ(answer.tokens, first) << name << " window " << options.window;
      EXPECT_EQ(score.logprobs, first_score) << name << " window " << options.window;
    }
  }
}

TEST(Session, GreedyTokensAreThoseThatItsOwnScoreHoldsMostProbable) {
  for (const std::string name : {"llama_tied", "qwen3", "lfm2_all_convolution"}) {
    const auto engine = load_golden(name);
    const auto session = make_session(*engine);
    std::vector<TokenId> text = some_text(70);
    const Answer answer = answer_of(*session, text, {.max_tokens = 30, .ignore_end_tokens = true});
    text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
    const Score score = session->score(text).value();
    for (size_t i = 0; i < answer.tokens.size(); ++i) {
      EXPECT_EQ(score.best_tokens[69 + i], answer.tokens[i]) << name << " " << i;
    }
  }
}

void expect_raw_logprobs(Session& session, const decode::SamplingOptions& sampling) {
  std::vector<TokenId> text = some_text(5);
  std::vector<float> reported;
  const GenerateOptions options{
      .sampling = sampling, .max_tokens = 10, .logprobs = 3, .ignore_end_tokens = true};
  const auto answer = session.generate(text, options, [&](const AnswerToken& token) {
    EXPECT_EQ(token.best.size(), 3U);
    EXPECT_TRUE(std::ranges::any_of(token.best, [&](const auto& entry) {
      return entry.id == token.id && entry.logprob == *token.logprob;
    }));
    reported.push_back(*token.logprob);
    return true;
  });
  text.insert(text.end(), answer->tokens.begin(), answer->tokens.end());
  const Score score = session.score(text).value();
  EXPECT_THAT(reported, ElementsAreArray(std::span(score.logprobs).subspan(4)));
}

TEST(Session, ReportsLogprobsOfTheRawDistribution) {
  const auto engine = load_golden("llama_tied");
  const auto session = make_session(*engine);
  const decode::SamplingOptions ways[] = {{.temperature = 0},
                                          {.temperature = 2, .top_k = 3, .seed = 4}};
  for (const auto& sampling : ways) expect_raw_logprobs(*session, sampling);
}

TEST(Session, ContinuesAConversationAsIfItHadReadItAnew) {
  for (const std::string name : {"llama_tied", "lfm2_mixed"}) {
    const auto engine = load_golden(name);
    const auto session = make_session(*engine);
    std::vector<TokenId> text = some_text(90);
    const Answer first = answer_of(*session, text, {.max_tokens = 10, .ignore_end_tokens = true});
    EXPECT_EQ(first.reused_tokens, 0);
    text.insert(text.end(), first.tokens.begin(), first.tokens.end());
    const std::vector<TokenId> more = some_text(20, 1);
    text.insert(text.end(), more.begin(), more.end());
    const Answer second = answer_of(*session, text, {.max_tokens = 10, .ignore_end_tokens = true});
    EXPECT_EQ(second.reused_tokens, 99);  // all but the last token of the answer, which was not run
    EXPECT_EQ(second.timings.rows, 21 + 9);
    const Answer anew =
        answer_of(*make_session(*engine), text, {.max_tokens = 10, .ignore_end_tokens = true});
    EXPECT_EQ(second.tokens, anew.tokens) << name;
  }
}

TEST(Session, CutsOffWhatDiffersOrBeginsAnewWhereTheModelCannotBeCut) {
  const std::pair<std::string, int64_t> models[] = {{"llama_tied", 40}, {"lfm2_mixed", 0}};
  for (const auto& [name, reused] : models) {
    const auto engine = load_golden(name);
    const auto session = make_session(*engine);
    std::vector<TokenId> text = some_text(90);
    answer_of(*session, text, {.max_tokens = 5, .ignore_end_tokens = true});
    text[40] += 1;
    const Answer second = answer_of(*session, text, {.max_tokens = 5, .ignore_end_tokens = true});
    EXPECT_EQ(second.reused_tokens, reused) << name;
    const Answer anew =
        answer_of(*make_session(*engine), text, {.max_tokens = 5, .ignore_end_tokens = true});
    EXPECT_EQ(second.tokens, anew.tokens) << name;
  }
}

TEST(Session, RunsTheLastTokenAgainWhenThePromptIsKnownAlready) {
  const auto engine = load_golden("llama_tied");
  const auto session = make_session(*engine);
  const GenerateOptions options{.max_tokens = 5, .ignore_end_tokens = true};
  const Answer first = answer_of(*session, some_text(30), options);
  const Answer again = answer_of(*session, some_text(30), options);
  EXPECT_EQ(again.reused_tokens, 29);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST(Session, MovesThroughBucketsWithoutChangingTheAnswer) {
  formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory("llama_tied")).value();
  checkpoint.config["max_position_embeddings"] = 2000;
  const auto engine = Engine::load(std::move(checkpoint), {}).value();
  ASSERT_EQ(engine->buckets().size(), 3U);
  const auto session = make_session(*engine);
  const int64_t small_kv_bytes = session->kv_bytes();
  std::vector<TokenId> text = some_text(500);
  const Answer answer = answer_of(*session, text, {.max_tokens = 600, .ignore_end_tokens = true});
  EXPECT_EQ(answer.tokens.size(), 600U);
  EXPECT_GT(session->kv_bytes(), 3 * small_kv_bytes);
  text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
  const Score score = make_session(*engine)->score(text).value();
  EXPECT_THAT(answer.tokens, ElementsAreArray(std::span(score.best_tokens).subspan(499)));
}

TEST(Session, ClipsMaxTokensToTheContextAndSaysSo) {
  const auto engine = load_golden("llama_tied", {.context = 50});
  const auto session = make_session(*engine);
  const Answer clipped =
      answer_of(*session, some_text(45), {.max_tokens = 6, .ignore_end_tokens = true});
  EXPECT_TRUE(clipped.clipped);
  EXPECT_EQ(clipped.max_tokens, 5);
  EXPECT_EQ(clipped.tokens.size(), 5U);
  EXPECT_EQ(clipped.finish_reason, decode::FinishReason::kLength);
  const Answer open = answer_of(*session, some_text(45), {.ignore_end_tokens = true});
  EXPECT_FALSE(open.clipped);
  EXPECT_EQ(open.tokens, clipped.tokens);
  const Answer full = answer_of(*session, some_text(50), {.ignore_end_tokens = true});
  EXPECT_EQ(full.tokens.size(), 0U);
  EXPECT_EQ(full.finish_reason, decode::FinishReason::kLength);
}

TEST(Session, RefusesPromptsThatCannotBeAnswered) {
  const auto engine = load_golden("llama_tied", {.context = 50});
  const auto session = make_session(*engine);
  const std::pair<std::vector<TokenId>, const char*> bad[] = {
      {{}, "the prompt is empty"},
      {some_text(51), "expected at most 50 tokens, got 51 tokens"},
      {{5, 131}, "token 1 of the prompt does not exist: expected ids from 0 to 130, got 131"},
      {{-1}, "got -1"},
  };
  for (const auto& [prompt, message] : bad) {
    const auto answer = session->generate(prompt, {}, keep_going);
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().message(), HasSubstr(message));
    ASSERT_FALSE(session->score(prompt).ok());
  }
  EXPECT_TRUE(session->score(some_text(1)).value().logprobs.empty());
  const auto prompt = some_text(3);
  EXPECT_FALSE(session->generate(prompt, {.max_tokens = -1}, keep_going).ok());
  EXPECT_FALSE(session->generate(prompt, {.logprobs = 101}, keep_going).ok());
  EXPECT_FALSE(session->generate(prompt, {.sampling = {.temperature = NAN}}, keep_going).ok());
  EXPECT_TRUE(session->generate(prompt, {}, keep_going).ok());  // nothing of this did harm
}

TEST(Session, EndsWithAnEndToken) {
  formats::Checkpoint checkpoint = formats::open_checkpoint(golden_directory("llama_tied")).value();
  const std::vector<TokenId> prompt = some_text(20);
  const Answer open = answer_of(*make_session(*load_golden("llama_tied")), prompt,
                                {.max_tokens = 8, .ignore_end_tokens = true});
  checkpoint.generation_config = {{"eos_token_id", open.tokens[3]}};
  const auto engine = Engine::load(std::move(checkpoint), {}).value();
  const Answer answer = answer_of(*make_session(*engine), prompt, {.max_tokens = 8});
  EXPECT_EQ(answer.finish_reason, decode::FinishReason::kStop);
  EXPECT_EQ(answer.tokens.back(), open.tokens[answer.tokens.size() - 1]);
  EXPECT_LE(answer.tokens.size(), 4U);
}

TEST(Session, CancelEndsAnAnswerBeforeTheNextCallAndTheSessionGoesOn) {
  const auto engine = load_golden("llama_tied");
  const auto session = make_session(*engine);
  const auto prompt = some_text(20);
  size_t count = 0;
  const auto cancelled =
      session->generate(prompt, {.ignore_end_tokens = true}, [&](const AnswerToken&) {
        if (++count == 3) session->cancel();
        return true;
      });
  EXPECT_EQ(cancelled->finish_reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(cancelled->tokens.size(), 3U);
  EXPECT_EQ(session->tokens().size(), 22U);
  const Answer next = answer_of(*session, prompt, {.max_tokens = 5, .ignore_end_tokens = true});
  EXPECT_EQ(next.tokens.size(), 5U);
  EXPECT_THAT(std::span(next.tokens).first(3), ElementsAreArray(cancelled->tokens));
}

// It comes when the answer is over but for its return.
TEST(Session, ACancelAtTheLastTokenIsSeenAndDoesNotReachTheNextAnswer) {
  const auto engine = load_golden("llama_tied");
  const auto session = make_session(*engine);
  const auto prompt = some_text(20);
  const GenerateOptions options{.max_tokens = 3, .ignore_end_tokens = true};
  int count = 0;
  const auto answer = session->generate(prompt, options, [&](const AnswerToken&) {
    if (++count == 3) session->cancel();
    return true;
  });
  EXPECT_EQ(answer->finish_reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(answer->tokens.size(), 3U);
  EXPECT_EQ(answer_of(*session, prompt, options).finish_reason, decode::FinishReason::kLength);
}

TEST(Session, ACancelBeforeTheAnswerIsNotLost) {
  const auto engine = load_golden("llama_tied");
  const auto session = make_session(*engine);
  session->cancel();
  const auto prompt = some_text(20);
  const Answer answer = answer_of(*session, prompt, {});
  EXPECT_EQ(answer.finish_reason, decode::FinishReason::kCancelled);
  EXPECT_EQ(answer.timings.calls, 0);
  session->cancel();
  EXPECT_THAT(session->score(prompt).error().what, HasSubstr("cancelled"));
}

TEST(Score, PerplexityIsTheExponentialOfTheMeanSurprise) {
  EXPECT_DOUBLE_EQ(
      (Score{.logprobs = {std::log(0.5F), std::log(0.125F)}, .best_tokens = {}, .timings = {}}
           .perplexity()),
      std::exp(-(static_cast<double>(std::log(0.5F)) + static_cast<double>(std::log(0.125F))) / 2));
}

}  // namespace
}  // namespace espalier::engine
