// espalier chat, as a process that reads its lines from a pipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/espalier_process.h"

namespace espalier::cli {
namespace {

using ::testing::HasSubstr;

Outcome chat(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = exact({"chat", "--greedy", "-n", "6"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_espalier(arguments, {.input = input});
}

std::string answer(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = exact({"run", "--greedy", "-n", "6"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_espalier(arguments).out;
}

TEST(Chat, AnswersEachLine) {
  const Outcome outcome = chat("hello\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, answer({"hello"}));
  EXPECT_EQ(outcome.err, "");
}

TEST(Chat, TakesLinesThatEndAsOnWindows) {
  EXPECT_EQ(chat("hello\r\n/history\r\n\r\n/quit\r\nnot this\r\n").out,
            chat("hello\n/history\n").out);
}

TEST(Chat, KeepsTheConversation) {
  // The second answer follows from both turns, so it is not that of the second line alone.
  const std::string first = answer({"hello"});
  const Outcome both = chat("hello\nwhat is it?\n/quit\nnot this\n");
  ASSERT_TRUE(both.out.starts_with(first));
  EXPECT_NE(both.out.substr(first.size()), answer({"what is it?"}));
  const Outcome history = chat("hello\n/history\n");
  EXPECT_EQ(history.out, first + "user: hello\nassistant: " + first);
}

TEST(Chat, ForgetsAndTakesBack) {
  const std::string first = answer({"hello"});
  EXPECT_EQ(chat("hello\n/clear\nhello\n").out, first + first);
  EXPECT_EQ(chat("hello\n/undo\nhello\n").out, first + first);
  EXPECT_EQ(chat("/undo\n/undo\nhello").out, first);
}

TEST(Chat, TakesASystemMessage) {
  const std::string with_system = answer({"-s", "Be brief.", "hello"});
  EXPECT_EQ(chat("hello\n", {"-s", "Be brief."}).out, with_system);
  EXPECT_EQ(chat("/system Be brief.\nhello\n").out, with_system);
  EXPECT_EQ(chat("/system Be brief.\n/system\nhello\n").out, answer({"hello"}));
}

TEST(Chat, GoesOnAfterAMessageThatCannotBeAnswered) {
  const Outcome outcome = chat("a\xff\n" + std::string(3000, 'x') + "\n/nonsense\nhello\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, answer({"hello"}));
  EXPECT_THAT(outcome.err, HasSubstr("the message is not UTF-8"));
  EXPECT_THAT(outcome.err, HasSubstr("the conversation is longer than the context"));
  EXPECT_THAT(outcome.err, HasSubstr("/clear begins anew, /undo takes the last turn back"));
  EXPECT_THAT(outcome.err, HasSubstr("no command '/nonsense'; /help lists them"));
}

TEST(Chat, SaysWhenTheContextClipsAnAnswer) {
  const Outcome clipped = run_espalier(
      exact({"chat", "--greedy", "-n", "1000", "--logit-bias", "2=-100"}), {.input = "hello\n"});
  EXPECT_THAT(clipped.err, HasSubstr("note: the context has room for "));
  EXPECT_THAT(clipped.err, HasSubstr("note: the context is full; /clear begins anew"));
  EXPECT_EQ(chat("hello\n").err, "");  // 6 tokens were asked for and said
}

TEST(Chat, ExplainsItself) {
  const Outcome outcome = chat("/help\n");
  EXPECT_EQ(outcome.out, "");
  for (const char* name : {"/help", "/system", "/clear", "/undo", "/history", "/quit"}) {
    EXPECT_THAT(outcome.err, HasSubstr(name));
  }
}

// On a busy machine the interrupt may come when the answer has already filled the context.
TEST(Chat, AnInterruptEndsTheAnswerNotTheChat) {
  Outcome outcome;
  for (int attempt = 0; attempt < 10; ++attempt) {
    outcome = run_espalier(exact({"chat", "--window", "1", "--logit-bias", "2=-100"}),
                           {.input = "hello\n/clear\n/help\n", .interrupt_on_output = true});
    if (outcome.err.find("the context is full") == std::string::npos) break;
  }
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("note: interrupted\n"));
  EXPECT_THAT(outcome.err, HasSubstr("/help"));  // the lines after it were read
}

}  // namespace
}  // namespace espalier::cli
