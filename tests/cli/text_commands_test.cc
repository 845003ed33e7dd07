// espalier tokenize, template and score, as processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/espalier_process.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

using ::testing::HasSubstr;

TEST(Tokenize, PrintsIdsOrIdsAndPieces) {
  const Json golden = expected();
  const std::string text = golden["score"]["text"];
  const Json report = json_of({"tokenize", "-m", tiny_chat(), "--json", text});
  EXPECT_EQ(report["ids"], golden["score"]["ids"]);
  EXPECT_EQ(report["pieces"].size(), report["ids"].size());
  EXPECT_EQ(report["pieces"][0], "<|bos|>");
  EXPECT_EQ(run_espalier({"tokenize", "-m", tiny_chat(), "--no-special", "a"}).out, "67\n");
  EXPECT_EQ(json_of({"tokenize", "-m", tiny_chat(), "--json", "--no-special"}, "")["ids"],
            Json::array());
}

TEST(Tokenize, TakesInputByteForByte) {
  const TemporaryDirectory directory;
  const std::string text = "tree\r\n\n";
  const Json piped = json_of({"tokenize", "-m", tiny_chat(), "--json"}, text);
  EXPECT_EQ(piped, json_of({"tokenize", "-m", tiny_chat(), "--json", text}));
  EXPECT_EQ(piped,
            json_of({"tokenize", "-m", tiny_chat(), "--json", "-f", directory.write("t", text)}));
}

TEST(Tokenize, GoesBackFromIdsToText) {
  const std::string text = "naïve 日本語 \t\n 64 rows";
  const Outcome ids =
      run_espalier({"tokenize", "-m", tiny_chat(), "--no-special"}, {.input = text});
  EXPECT_EQ(run_espalier({"tokenize", "-m", tiny_chat(), "--decode"}, {.input = ids.out}).out,
            text);
  const Json listed = json_of({"tokenize", "-m", tiny_chat(), "--decode", "--json", "[1, 67,2]"});
  EXPECT_EQ(listed["text"], "<|im_start|>a<|im_end|>");
  EXPECT_EQ(listed["ids"], Json({1, 67, 2}));
  for (const char* bad : {"[1, 320]", "[-1]", "1.5", "x", "99999999999", "1 2 3x", "[1, [2], 3]",
                          "1, 2]", "[1, true]", "{\"ids\": [1]}"}) {
    const Outcome outcome = run_espalier({"tokenize", "-m", tiny_chat(), "--decode", bad});
    EXPECT_EQ(outcome.exit_code, 1) << bad;
    EXPECT_THAT(outcome.err, HasSubstr("expected numbers from 0 to 319, got '"));
  }
  for (const char* bad : {"[1,2", "[", "[1,2]]", "[1 2]", "[1,,2]", "[1] 2"}) {
    const Outcome outcome = run_espalier({"tokenize", "-m", tiny_chat(), "--decode", bad});
    EXPECT_EQ(outcome.exit_code, 1) << bad;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr("the list of ids: not valid JSON"));
  }
}

TEST(Template, RendersAsTransformersDoes) {
  const Json golden = expected();
  const std::string messages = Json({{{"role", "system"}, {"content", golden["system"]}},
                                     {{"role", "user"}, {"content", golden["prompt"]}}})
                                   .dump();
  const TemporaryDirectory directory;
  const std::string file = directory.write("messages.json", messages);
  const std::string rendered = golden["rendered"];
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat(), messages}).out, rendered);
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat(), file}).out, rendered);
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat(), "-f", file}).out, rendered);
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat()}, {.input = messages}).out, rendered);
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat(), "{\"messages\":" + messages + "}"}).out,
            rendered);
  const Json report = json_of({"template", "-m", tiny_chat(), "--json", messages});
  EXPECT_EQ(report["text"], rendered);
  EXPECT_EQ(report["ids"], golden["prompt_token_ids"]);
}

TEST(Template, TakesToolsVariablesAndNoGenerationPrompt) {
  const TemporaryDirectory directory;
  const std::string tools = directory.write("tools.json", R"([{"name":"f","b":1,"a":2}])");
  const std::string messages = R"([{"role":"user","content":"x"}])";
  EXPECT_EQ(run_espalier({"template", "-m", tiny_chat(), "--tools", tools, "--set", "mood=good",
                          "--no-generation-prompt", messages})
                .out,
            "<|bos|><|im_start|>user\nx<|im_end|>\n[{\"name\": \"f\", \"b\": 1, \"a\": 2}]good");
}

TEST(Template, RefusesWhatAreNoMessages) {
  const TemporaryDirectory directory;
  const std::pair<std::string, const char*> bad[] = {
      {"[{\"role\":\"wizard\",\"content\":\"x\"}]", "unknown role wizard"},
      {"[{\"content\":\"x\"}]", "these are no messages: expected a list like"},
      {"[1]", "these are no messages"},
      {"{}", "these are no messages"},
      {"[{", "not valid JSON"},
      {std::string(500, '['), "nested too deeply"},
      {"/no/such/file", "/no/such/file"},
  };
  for (const auto& [messages, message] : bad) {
    const Outcome outcome = run_espalier({"template", "-m", tiny_chat(), messages});
    EXPECT_EQ(outcome.exit_code, 1) << messages;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  const Outcome request =
      run_espalier({"template", "-m", tiny_chat(), R"({"messages": [], "tools": {"name": "f"}})"});
  EXPECT_EQ(request.exit_code, 1);
  EXPECT_THAT(request.err, HasSubstr("\"tools\" of the request holds no tools: expected a JSON "
                                     "list of tool descriptions, got object"));
  const Outcome tools = run_espalier(
      {"template", "-m", tiny_chat(), "--tools", directory.write("tools.json", "{}"), "[]"});
  EXPECT_THAT(tools.err,
              HasSubstr("holds no tools: expected a JSON list of tool descriptions, got object"));
}

TEST(Score, EqualsTransformersForEveryWindow) {
  const Json golden = expected()["score"];
  const TemporaryDirectory directory;
  const std::string text = directory.write("text", golden["text"].get<std::string>());
  const std::string ids = directory.write("ids.json", golden["ids"].dump());
  for (const auto& source : {std::vector<std::string>{"--file", text}, {"--ids-file", ids}}) {
    for (const char* window : {"1", "7", "64", "256"}) {
      std::vector<std::string> arguments = exact({"score", "--json", "--window", window});
      arguments.insert(arguments.end(), source.begin(), source.end());
      const Json report = json_of(arguments);
      EXPECT_EQ(report["ids"], golden["ids"]);
      EXPECT_EQ(report["top1_ids"], golden["top1_ids"]);
      EXPECT_NEAR(report["perplexity"], golden["perplexity"],
                  1e-3 * golden["perplexity"].get<double>());
      ASSERT_EQ(report["logprobs"].size(), golden["logprobs"].size());
      for (size_t i = 0; i < golden["logprobs"].size(); ++i) {
        EXPECT_NEAR(report["logprobs"][i], golden["logprobs"][i], 1e-4);
      }
    }
  }
}

TEST(Score, TakesTheIdsThatTokenizePrints) {
  const TemporaryDirectory directory;
  const std::string text = "A tree in a fixed frame.";
  const Outcome tokenized = run_espalier({"tokenize", "-m", tiny_chat(), "--json", text});
  const std::string ids = directory.write("ids.json", tokenized.out);
  EXPECT_EQ(json_of({"score", "-m", tiny_chat(), "--json", "--ids-file", ids})["logprobs"],
            json_of({"score", "-m", tiny_chat(), "--json", text})["logprobs"]);
}

TEST(Score, RefusesWhatItCannotScore) {
  const TemporaryDirectory directory;
  const std::pair<std::string, const char*> bad[] = {
      {"[1, -2]", "holds no token ids"},
      {"[1, 4294967297]", "holds no token ids"},
      {"{\"a\":1}", "holds no token ids"},
      {"[1, 2.5]", "holds no token ids"},
      {"{\"ids\":7}", "holds no token ids"},
      {"[1, 320]", "does not exist"},
      {"[]", "empty"},
      {"[1, ", "not valid JSON"},
  };
  for (const auto& [content, message] : bad) {
    const Outcome outcome = run_espalier(
        {"score", "-m", tiny_chat(), "--json", "--ids-file", directory.write("ids.json", content)});
    EXPECT_EQ(outcome.exit_code, 1) << content;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  EXPECT_THAT(run_espalier({"score", "-m", tiny_chat(), ""}).err, HasSubstr("the text is empty"));
  // Before a model is opened.
  EXPECT_THAT(run_espalier({"score", "-m", "/no/such", ""}).err, HasSubstr("the text is empty"));
  EXPECT_THAT(run_espalier({"score", "-m", tiny_chat()}, {.input = "\xff"}).err,
              HasSubstr("offset 0"));
}

}  // namespace
}  // namespace espalier::cli
