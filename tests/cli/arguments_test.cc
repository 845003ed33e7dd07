#include "espalier/cli/arguments.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "espalier/cli/flags.h"
#include "espalier/cli/help.h"
#include "tests/cli/espalier_process.h"

namespace espalier::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<Invocation> parse(const std::vector<std::string>& words) { return parse_arguments(words); }

TEST(Arguments, TakeValuesAfterABlankAnEqualsSignOrALetter) {
  const auto invocation =
      parse({"run", "-m", "a b", "--temperature=0.5", "--top-k", "40", "-n", "7", "--stop=x=y",
             "--stop", "--", "--presence-penalty", "-0.5", "hello"});
  ASSERT_TRUE(invocation.ok()) << invocation.error().message();
  const Options& options = invocation->options;
  EXPECT_EQ(invocation->command->name, "run");
  EXPECT_EQ(options.model, "a b");
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_k, 40);
  EXPECT_EQ(options.max_tokens, 7);
  EXPECT_EQ(options.presence_penalty, -0.5);
  EXPECT_THAT(options.stops, ElementsAre("x=y", "--"));
  EXPECT_THAT(options.arguments, ElementsAre("hello"));
}

TEST(Arguments, EndTheirFlagsWithTwoDashes) {
  const auto invocation = parse({"run", "-m", "x", "--", "--json"});
  EXPECT_THAT(invocation->options.arguments, ElementsAre("--json"));
  EXPECT_FALSE(invocation->options.json);
}

TEST(Arguments, ReadBiasesAndVariables) {
  const auto run = parse({"run", "-m", "x", "--logit-bias", "5=-100", "--logit-bias", "7=2.5"});
  ASSERT_EQ(run->options.logit_bias.size(), 2U);
  EXPECT_EQ(run->options.logit_bias[0].token, 5);
  EXPECT_EQ(run->options.logit_bias[1].bias, 2.5F);
  const auto rendered = parse({"template", "-m", "x", "--set", "a=b=c"});
  EXPECT_EQ(rendered->options.variables[0].first, "a");
  EXPECT_EQ(rendered->options.variables[0].second, "b=c");
}

TEST(Arguments, ThatAreWrongAreErrorsWithAWayOut) {
  const std::pair<std::vector<std::string>, const char*> bad[] = {
      {{"rnu"}, "unknown command 'rnu'. Did you mean 'run'?"},
      {{"xyzzy"}, "unknown command 'xyzzy'. See 'espalier --help'."},
      {{"run", "--temprature", "1"}, "Did you mean '--temperature'?"},
      {{"run", "--max", "1"}, "Did you mean '--max-tokens'?"},
      {{"run", "--program"}, "'espalier run' has no flag '--program'"},
      {{"run", "--ids-file", "x"}, "'espalier run' has no flag '--ids-file'"},
      {{"run", "-m"}, "--model needs a value: expected --model PATH, got -m"},
      {{"run", "--json=1"}, "--json takes no value: expected --json, got --json=1"},
      {{"run", "--temperature", "warm"},
       "--temperature: the value is not usable: expected a number, got 'warm'"},
      {{"run", "--temperature", "1x"}, "got '1x'"},
      {{"run", "--top-k", "-1"},
       "--top-k: the value is not usable: expected a whole number of at least 0, got '-1'"},
      {{"run", "--top-k", "99999999999999999999"}, "--top-k"},
      {{"run", "--seed", "18446744073709551616", "x"}, "at most 9223372036854775807, got '1844"},
      {{"run", "-n", "9223372036854775808", "x"}, "at most 9223372036854775807, got '9223"},
      {{"run", "--window", "1000000"}, "expected a whole number from 1 to 1024, got '1000000'"},
      {{"run", "--unit", "abacus"}, "--unit: the value is not usable: expected cpu or reference"},
      {{"run", "--unit", ""}, "expected cpu or reference, got ''"},
      {{"run", "--kernels", "quantum"}, "--kernels: the value is not usable: expected "},
      {{"run", "--kernels", ""}, "got ''"},
      {{"run", "-m", "x", "-t", "-1", "y"}, "temperature is out of range: expected 0 to 100"},
      {{"run", "-m", "x", "-t", "nan", "y"}, "temperature is out of range: expected 0 to 100"},
      {{"chat", "-m", "x", "-t", "101"}, "temperature is out of range: expected 0 to 100"},
      {{"run", "-m", "x", "--top-p", "2", "y"}, "top-p is out of range: expected 0 to 1, got 2"},
      {{"run", "-m", "x", "--min-p", "-0.5", "y"}, "min-p is out of range"},
      {{"run", "-m", "x", "--repetition-penalty", "0", "y"}, "repetition penalty is out of range"},
      {{"run", "-m", "x", "--presence-penalty", "101", "y"}, "presence penalty is out of range"},
      {{"run", "-m", "x", "--logit-bias", "-1=2", "y"}, "token of a logit bias is out of range"},
      {{"run", "-m", "x", "--logit-bias", "1=200", "y"}, "logit bias of token 1 is out of range"},
      {{"run", "--threads", "0"}, "expected a whole number from 1 to 256, got '0'"},
      {{"run", "--threads", "257"}, "expected a whole number from 1 to 256, got '257'"},
      {{"run", "--window", "1025"}, "expected a whole number from 1 to 1024, got '1025'"},
      {{"run", "--weights", "int3"}, "expected int8 or int8g64 or keep, got 'int3'"},
      {{"run", "--activations", "32"}, "expected 8 or 16, got '32'"},
      {{"run", "--logit-bias", "5"}, "expected TOKEN=BIAS, like 42=-100, got '5'"},
      {{"run", "--logit-bias", "x=1"}, "got 'x'"},
      {{"template", "--set", "=1"}, "expected NAME=VALUE"},
      {{"run", "-m", "x", "two", "words"},
       "too many arguments for 'espalier run': expected at most 1, got 2: 'words'"},
      {{"run", "-m", "x", "-f", "y", "z"}, "the text was given twice"},
      {{"run", "hello"}, "no model was given: expected --model PATH (-m)"},
      {{"run", "-m", "x", "--raw", "--system", "y", "z"}, "--raw leaves the chat template out"},
      {{"run", "-m", "x", "--logprobs", "3", "z"}, "--logprobs is part of the JSON output"},
      {{"dump", "-m", "x"}, "nowhere to write to: expected --output PATH (-o)"},
      {{"score", "-m", "x", "--ids-file", "y", "z"}, "two things to score"},
  };
  for (const auto& [words, message] : bad) {
    const auto invocation = parse(words);
    ASSERT_FALSE(invocation.ok()) << message;
    EXPECT_THAT(invocation.error().message(), HasSubstr(message));
    const Outcome outcome = run_espalier(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "error: " + invocation.error().message() + "\n");
  }
}

TEST(Help, NamesEveryCommandAndEveryFlagOfACommand) {
  for (const Command& command : all_commands()) {
    EXPECT_THAT(help_text(), HasSubstr(std::string(command.name) + " "));
    const std::string help = help_text(command);
    for (const Flag& flag : all_flags()) {
      EXPECT_EQ(help.find(fmt::format(" {} ", flag.name)) != std::string::npos,
                (flag.commands & command.bit) != 0)
          << command.name << " " << flag.name;
    }
  }
}

TEST(Help, ThatCannotBeWrittenIsAFailure) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"run", "--help"}, {"--version"}}) {
    const Outcome outcome = run_espalier(words, {.output_is_full = true});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, StartsWith("error: writing to standard output failed: got "));
  }
}

TEST(Help, GoesToStdoutAndIsASuccess) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"--help"}, {"help"}, {"run", "--help"}, {"chat", "-h"}}) {
    const Outcome outcome = run_espalier(words);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.out, StartsWith("espalier"));
    EXPECT_EQ(outcome.err, "");
    for (size_t start = 0; start < outcome.out.size();) {
      const size_t end = outcome.out.find('\n', start);
      EXPECT_LE(end - start, 120U) << outcome.out.substr(start, end - start);
      start = end + 1;
    }
  }
}

TEST(Talk, IsColouredOnlyOnATerminalThatWantsIt) {
  const auto error_of = [](bool terminal, std::vector<std::string> environment) {
    return run_espalier({"rnu"}, {.terminal = terminal, .environment = std::move(environment)}).err;
  };
  EXPECT_THAT(error_of(true, {"TERM=xterm"}), StartsWith("\033[31merror: \033[0munknown command"));
  EXPECT_THAT(error_of(true, {"TERM=xterm", "NO_COLOR=1"}), StartsWith("error: "));
  EXPECT_THAT(error_of(true, {"TERM=dumb"}), StartsWith("error: "));
  EXPECT_THAT(error_of(false, {"TERM=xterm"}), StartsWith("error: "));
}

TEST(Version, NamesTheVersionAndTheKernelsOfThisMachine) {
  const Outcome outcome = run_espalier({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out,
              ::testing::MatchesRegex("espalier [0-9]+\\.[0-9]+\\.[0-9]+( \\([0-9a-f]+\\))?\n"
                                      "kernels: .*portable\n"));
  EXPECT_EQ(outcome.err, "");
}

TEST(Flags, HaveNamesOfTheirOwn) {
  for (const Command& command : all_commands()) {
    std::set<std::string_view> names;
    for (const Flag& flag : all_flags()) {
      if ((flag.commands & command.bit) == 0) continue;
      EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      EXPECT_TRUE(flag.letter.empty() || names.insert(flag.letter).second) << flag.letter;
      EXPECT_FALSE(flag.help.empty());
    }
  }
}

TEST(Nearest, FindsTyposAndBeginningsButNotOtherWords) {
  const std::string_view words[] = {"--temperature", "--top-k", "--top-p", "--threads"};
  EXPECT_EQ(nearest("--temp", words), "--temperature");
  EXPECT_EQ(nearest("--topk", words), "--top-k");
  EXPECT_EQ(nearest("--thraeds", words), "--threads");
  EXPECT_EQ(nearest("--banana-split", words), "");
}

}  // namespace
}  // namespace espalier::cli
