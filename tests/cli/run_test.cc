// espalier run, as a process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/cli/espalier_process.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// The prompt and system message that expected.json is about.
std::vector<std::string> greedy_run(std::vector<std::string> more = {}) {
  const Json golden = expected();
  std::vector<std::string> arguments =
      exact({"run", "--system", golden["system"], "--greedy", "--max-tokens", "24"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Run, KeepsPackedWeightsForTheNextRun) {
  const TemporaryDirectory directory;
  const auto run = [&](const std::string& cache, const std::vector<std::string>& environment) {
    std::vector<std::string> arguments = {"run", "-m", tiny_chat(), "--greedy",
                                          "-n",  "8",  "--json",    "Hello"};
    if (!cache.empty()) arguments.insert(arguments.end(), {"--packed-cache", cache});
    const Outcome outcome = run_espalier(arguments, {.environment = environment});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    Json report = parse_json(outcome.out, "stdout").value();
    report["err"] = outcome.err;
    return report;
  };
  const Json without = run("off", {});
  EXPECT_EQ(without["packed"]["from"], "memory");
  EXPECT_EQ(run("", {})["packed"]["from"], "memory");  // nothing says where the home is
  const std::string folder = directory.path();
  for (const auto& [cache, environment] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {folder + "/given", {}},
           {"", {"HOME=" + folder}},
           {"", {"HOME=/nowhere", "XDG_CACHE_HOME=" + folder + "/xdg"}},
           {"", {"XDG_CACHE_HOME=/nowhere", "ESPALIER_CACHE=" + folder + "/own"}}}) {
    for (const char* from : {"written", "cache"}) {
      const Json report = run(cache, environment);
      EXPECT_EQ(report["packed"]["from"], from);
      EXPECT_GT(report["packed"]["ms"], 0);
      EXPECT_EQ(report["text"], without["text"]);
      EXPECT_EQ(report["err"], "");
      EXPECT_THAT(std::string(report["packed"]["path"]), HasSubstr(folder));
    }
  }
  EXPECT_EQ(run("off", {"HOME=" + folder})["packed"]["from"], "memory");
  const std::string path = run(folder + "/given", {})["packed"]["path"];
  std::filesystem::resize_file(path, 5000);
  EXPECT_THAT(std::string(run(folder + "/given", {})["err"]),
              MatchesRegex("note: '.*' does not hold the packed weights: expected .*\n"));
  EXPECT_EQ(run(folder + "/given", {})["err"], "");
}

TEST(Run, AnswersAsTransformersDoes) {
  const Json golden = expected();
  const Json report = json_of(greedy_run({"--json", golden["prompt"]}));
  EXPECT_EQ(report["token_ids"], golden["token_ids"]);
  EXPECT_EQ(report["prompt_token_ids"], golden["prompt_token_ids"]);
  EXPECT_EQ(report["text"], golden["text"]);
  EXPECT_EQ(report["finish_reason"], "length");
  for (const char* key : {"load_ms", "prefill_ms", "ttft_ms", "decode_tok_s"}) {
    EXPECT_GT(report["timings"][key], 0) << key;
  }
  for (const char* key : {"peak_rss_bytes", "anonymous_bytes", "weights_bytes", "kv_bytes"}) {
    EXPECT_GT(report["memory"][key], 0) << key;
  }
}

TEST(Run, PrintsTheAnswerAloneOnStdout) {
  const Json golden = expected();
  const Outcome outcome = run_espalier(greedy_run({golden["prompt"]}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, golden["text"].get<std::string>() + "\n");
  EXPECT_EQ(outcome.err, "");
}

TEST(Run, TakesThePromptFromAPipeOrAFile) {
  const Json golden = expected();
  const std::string prompt = golden["prompt"];
  const std::string answer = golden["text"].get<std::string>() + "\n";
  EXPECT_EQ(run_espalier(greedy_run(), {.input = prompt}).out, answer);
  EXPECT_EQ(run_espalier(greedy_run(), {.input = prompt + "\n"}).out, answer);
  EXPECT_EQ(run_espalier(greedy_run({"-"}), {.input = prompt}).out, answer);
  const TemporaryDirectory directory;
  const std::string file = directory.write("prompt.txt", prompt);
  EXPECT_EQ(run_espalier(greedy_run({"--file", file}), {.input = "not this"}).out, answer);
}

TEST(Run, UsesTheWholeWindowAndCountsIt) {
  const Json golden = expected();
  const auto prompt_tokens = static_cast<int64_t>(golden["prompt_token_ids"].size());
  for (const int64_t window : {1, 7, 32, 64}) {
    const Json report = json_of(greedy_run(
        {"--json", "--window", std::to_string(window), "--speculate", "off", golden["prompt"]}));
    EXPECT_EQ(report["token_ids"], golden["token_ids"]);
    EXPECT_EQ(report["timings"]["rows"], prompt_tokens + 23);
    EXPECT_EQ(report["timings"]["calls"], (prompt_tokens + window - 1) / window + 23);
  }
}

TEST(Run, GuessedTokensChangeNothingButTheNumberOfCalls) {
  const Json golden = expected();
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--speculate", "off"},
                                             {"--speculate", "chain", "--draft-tokens", "4"},
                                             {"--speculate", "tree"},
                                             {"--speculate", "auto"},
                                             {}}) {
    std::vector<std::string> arguments = greedy_run({"--json", golden["prompt"]});
    arguments.insert(arguments.end() - 1, flags.begin(), flags.end());
    const Json report = json_of(arguments);
    EXPECT_EQ(report["token_ids"], golden["token_ids"]);
    const Json& speculation = report["speculation"];
    EXPECT_EQ(speculation["cycles"].get<int64_t>() + speculation["accepted_tokens"].get<int64_t>(),
              23);
    EXPECT_LE(speculation["accepted_tokens"], speculation["draft_tokens"]);
  }
}

TEST(Run, ExplainsWhatGuessingDid) {
  const Json golden = expected();
  const Outcome outcome =
      run_espalier(greedy_run({"--speculate", "tree", "--explain", golden["prompt"]}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("guesses were right"));
}

TEST(Run, NeverReadsControlTokensFromThePrompt) {
  const Json plain = json_of({"tokenize", "-m", tiny_chat(), "--json", "a<|im_end|>b"});
  EXPECT_THAT(plain["ids"], ::testing::Contains(2));
  for (const char* raw : {"--greedy", "--raw"}) {
    const Json report =
        json_of({"run", "-m", tiny_chat(), "--json", "-n", "1", raw, "a<|im_end|>b"});
    const Json other = json_of({"run", "-m", tiny_chat(), "--json", "-n", "1", raw, "ab"});
    EXPECT_EQ(std::ranges::count(report["prompt_token_ids"], Json(2)),
              std::ranges::count(other["prompt_token_ids"], Json(2)));
  }
}

TEST(Run, ContinuesARawPromptAfterTheTokenizersBos) {
  const Json report = json_of({"run", "-m", tiny_chat(), "--json", "-n", "2", "--raw", "tree"});
  const Json tokens = json_of({"tokenize", "-m", tiny_chat(), "--json", "tree"});
  EXPECT_EQ(report["prompt_token_ids"], tokens["ids"]);
  EXPECT_EQ(report["prompt_token_ids"][0], 0);
}

TEST(Run, EndsBeforeAStopStringAcrossTokens) {
  const Json golden = expected();
  const std::string text = golden["text"];
  const size_t place = text.find("jmal");
  ASSERT_NE(place, std::string::npos);
  const Json report =
      json_of(greedy_run({"--json", "--stop", "jma", "--stop", "never", golden["prompt"]}));
  EXPECT_EQ(report["text"], text.substr(0, place));
  EXPECT_EQ(report["finish_reason"], "stop");
  EXPECT_LT(report["token_ids"].size(), golden["token_ids"].size());
}

TEST(Run, GivesTheSameSampleForTheSameSeed) {
  const auto sample = [](const std::string& seed) {
    return json_of({"run", "-m", tiny_chat(), "--json", "-n", "20", "--temperature", "1.5",
                    "--top-k", "200", "--seed", seed, "hello"});
  };
  EXPECT_EQ(sample("1")["token_ids"], sample("1")["token_ids"]);
  EXPECT_NE(sample("1")["token_ids"], sample("2")["token_ids"]);
  const Json unseeded =
      json_of({"run", "-m", tiny_chat(), "--json", "-n", "9", "--top-p", "0.9", "hi"});
  const Json again = json_of({"run", "-m", tiny_chat(), "--json", "-n", "9", "--top-p", "0.9",
                              "--seed", std::to_string(unseeded["seed"].get<int64_t>()), "hi"});
  EXPECT_EQ(unseeded["token_ids"], again["token_ids"]);
}

TEST(Run, ObeysBiasesAndReportsLogprobs) {
  const Json report = json_of({"run", "-m", tiny_chat(), "--json", "--greedy", "-n", "3",
                               "--logit-bias", "77=100", "--logprobs", "2", "hello"});
  EXPECT_EQ(report["token_ids"], Json({77, 77, 77}));
  ASSERT_EQ(report["logprobs"].size(), 3U);
  const Json& first = report["logprobs"][0];
  EXPECT_EQ(first["id"], 77);
  EXPECT_EQ(first["top"].size(), 2U);
  EXPECT_LE(first["logprob"], first["top"][0]["logprob"]);
}

TEST(Run, ClipsMaxTokensToTheContextAndSaysSo) {
  const Outcome outcome = run_espalier(
      {"run", "-m", tiny_chat(), "--context", "20", "-n", "500", "--raw", "tree", "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: the context has room for "));
  const Json report = parse_json(outcome.out, "stdout").value();
  EXPECT_LE(report["prompt_token_ids"].size() + report["token_ids"].size(), 20U);
}

TEST(Run, WarnsOfMoreThreadsThanCores) {
  const Outcome outcome = run_espalier(greedy_run({"--threads", "200", "--max-tokens", "1", "x"}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: 200 threads on "));
}

TEST(Run, TakesItsSamplingFromTheModelUnlessItIsGreedy) {
  const TemporaryDirectory directory;
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors",
                           "tokenizer_config.json", "chat_template.jinja"}) {
    std::filesystem::copy(tiny_chat() + "/" + name, directory / name);
  }
  directory.write("generation_config.json",
                  R"({"do_sample": true, "temperature": 50.0, "repetition_penalty": 1.5})");
  const auto answer = [&](const std::string& model, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", "-m",     model, "--json", "-n",
                                          "20",  "--seed", "3",   "hello"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments)["token_ids"];
  };
  EXPECT_NE(answer(directory.path(), {}), answer(tiny_chat(), {}));
  EXPECT_EQ(answer(directory.path(), {"--greedy"}), answer(tiny_chat(), {}));
  EXPECT_EQ(answer(directory.path(), {}),
            answer(tiny_chat(), {"--temperature", "50", "--repetition-penalty", "1.5"}));
}

TEST(Run, RefusesPromptsThatItCannotAnswer) {
  const auto run = [](std::vector<std::string> more, const std::string& input = "") {
    std::vector<std::string> arguments = {"run", "-m", tiny_chat()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_espalier(arguments, {.input = input});
  };
  const std::pair<Outcome, const char*> bad[] = {
      {run({""}), "error: the prompt is empty: expected some text, got 0 bytes."},
      {run({}), "error: the prompt is empty"},
      {run({}, "\n"), "error: the prompt is empty"},
      {run({}, "ab\xff"),
       "error: the prompt is not UTF-8: expected valid UTF-8, got byte 0xFF at offset 2."},
      {run({"\xe2\x82"}), "got byte 0xE2 at offset 0"},
      {run({"-s", "\xc0\x80", "x"}), "error: the system message is not UTF-8"},
      {run({"-f", "/no/such/file"}), "/no/such/file"},
      {run({std::string(5000, 'x')}),
       "error: the prompt is longer than the context: expected at most 256 tokens, got "},
      {run({"--logit-bias", "320=1", "x"}), "expected 0 to 319, got 320"},
      {run({"--context", "257", "x"}), "expected 1 to 256 positions, got 257"},
      {run({"--unit", "reference", "--kernels", "portable", "x"}), "portable"},
      {run({"--drafter", "/no/such/drafter", "x"}), "/no/such/drafter"},
      {run({"--drafter", tiny_chat(), "x"}), "no drafter"},
  };
  for (const auto& [outcome, message] : bad) {
    EXPECT_EQ(outcome.exit_code, 1) << message;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

TEST(Run, NamesTheGenerationConfigurationThatItCannotUse) {
  const TemporaryDirectory directory;
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors",
                           "tokenizer_config.json", "chat_template.jinja"}) {
    std::filesystem::copy(tiny_chat() + "/" + name, directory / name);
  }
  for (const char* bad : {R"("temperature": -1)", R"("top_p": 2)", R"("top_k": -5)",
                          R"("repetition_penalty": 0)", R"("temperature": "hot")"}) {
    directory.write("generation_config.json", fmt::format("{{\"do_sample\": true, {}}}", bad));
    const Outcome outcome = run_espalier({"run", "-m", directory.path(), "hello"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(directory.path() + ": generation_config.json: "));
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map terabytes
// From too little memory to enough of it.
void expect_errors_or_an_answer(const char* threads, uint64_t step_kib) {
  bool has_failed = false;
  bool has_answered = false;
  for (uint64_t kib = 4096; kib <= (1 << 20) && !has_answered; kib += step_kib) {
    const Outcome outcome =
        run_espalier({"run", "-m", tiny_chat(), "-n", "2", "--threads", threads, "hello"},
                     {.address_bytes = kib << 10});
    const bool is_loaded = outcome.exit_code != 127 && outcome.exit_code != -SIGSEGV;
    if (!has_failed && !is_loaded) continue;  // the program itself has no room
    has_answered = outcome.exit_code == 0;
    if (has_answered) continue;
    has_failed = true;
    EXPECT_EQ(outcome.exit_code, 1) << kib << " KiB: " << outcome.err;
    EXPECT_THAT(outcome.err, MatchesRegex("(note: [^\n]*\n)?error: [^\n]*\n"));
  }
  EXPECT_TRUE(has_failed);
  EXPECT_TRUE(has_answered);
}

TEST(Run, WithoutMemoryEndsWithAnErrorWhereverThatIs) {
  expect_errors_or_an_answer("1", 64);
  expect_errors_or_an_answer("4", 512);
}
#endif

// The slowest way to compute; and yet, on a busy machine the signal may come when all has been said.
TEST(Run, AnInterruptEndsTheAnswerAndKeepsWhatWasSaid) {
  Outcome outcome;
  for (int tries = 0; tries < 20 && outcome.exit_code != 1; ++tries) {
    outcome = run_espalier(exact({"run", "--window", "1", "--logit-bias", "2=-100", "hello"}),
                           {.interrupt_on_output = true});
  }
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with('\n'));
  EXPECT_EQ(outcome.err, "");
}

TEST(Run, AReaderThatLeavesIsNoError) {
  const Outcome outcome = run_espalier(
      {"run", "-m", tiny_chat(), "--logit-bias", "2=-100", "hello"}, {.close_output = true});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "");
}

}  // namespace
}  // namespace espalier::cli
