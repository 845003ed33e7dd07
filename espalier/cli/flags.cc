#include "espalier/cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <type_traits>

#include "espalier/base/threads.h"
#include "espalier/engine/session.h"
#include "espalier/program/validate.h"
#include "espalier/units/registry.h"

namespace espalier::cli {
namespace {

Error bad_value(const std::string& expected, const std::string& value) {
  return Error{.what = "the value is not usable",
               .expected = expected,
               .actual = fmt::format("'{}'", value),
               .fix = "See --help."};
}

template <typename Number>
Result<Number> parse_number(const std::string& text, const std::string& expected) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range && std::is_integral_v<Number>) {
    constexpr auto kLargest = std::numeric_limits<Number>::max();
    return bad_value(fmt::format("{}, at most {}", expected, kLargest), text);
  }
  if (error != std::errc() || end != text.data() + text.size()) return bad_value(expected, text);
  return number;
}

template <auto kMember>
Status set_switch(Options& options, const std::string&) {
  options.*kMember = true;
  return Ok{};
}

template <auto kMember>
Status set_text(Options& options, const std::string& value) {
  options.*kMember = value;
  return Ok{};
}

template <auto kMember>
Status add_text(Options& options, const std::string& value) {
  (options.*kMember).push_back(value);
  return Ok{};
}

template <auto kMember>
Status set_number(Options& options, const std::string& value) {
  ASSIGN_OR_RETURN(options.*kMember, parse_number<double>(value, "a number"));
  return Ok{};
}

Result<int64_t> parse_integer(const std::string& value, int64_t lowest, int64_t highest) {
  const std::string expected = highest == std::numeric_limits<int64_t>::max()
                                   ? fmt::format("a whole number of at least {}", lowest)
                                   : fmt::format("a whole number from {} to {}", lowest, highest);
  ASSIGN_OR_RETURN(const int64_t number, parse_number<int64_t>(value, expected));
  if (number < lowest || number > highest) return bad_value(expected, value);
  return number;
}

template <auto kMember, int64_t kLowest, int64_t kHighest = std::numeric_limits<int64_t>::max()>
Status set_integer(Options& options, const std::string& value) {
  ASSIGN_OR_RETURN(options.*kMember, parse_integer(value, kLowest, kHighest));
  return Ok{};
}

Status set_one_of(const std::vector<std::string>& names, const std::string& value,
                  std::string& out) {
  if (std::ranges::find(names, value) == names.end()) {
    return bad_value(fmt::format("{}", fmt::join(names, " or ")), value);
  }
  out = value;
  return Ok{};
}

Status set_unit(Options& options, const std::string& value) {
  return set_one_of(units::unit_names(), value, options.unit);
}

// Of any unit: which one it is may be said later.
Status set_kernels(Options& options, const std::string& value) {
  std::vector<std::string> names;
  for (const std::string& unit : units::unit_names()) {
    std::ranges::copy(units::make_unit(unit).value()->kernel_names(), std::back_inserter(names));
  }
  return set_one_of(names, value, options.kernels);
}

Status set_weights(Options& options, const std::string& value) {
  return set_one_of({"int8", "int8g64", "keep"}, value, options.weights);
}

template <auto kMember>
Status set_bits(Options& options, const std::string& value) {
  if (value != "8" && value != "16") return bad_value("8 or 16", value);
  options.*kMember = value == "8" ? 8 : 16;
  return Ok{};
}

// In the order of the modes' values.
Status set_speculation(Options& options, const std::string& value) {
  static constexpr std::array<std::string_view, 4> kNames = {"off", "chain", "tree", "auto"};
  const auto name = std::ranges::find(kNames, value);
  if (name == kNames.end()) return bad_value(fmt::format("{}", fmt::join(kNames, " or ")), value);
  options.speculation.mode = static_cast<decode::SpeculationMode>(name - kNames.begin());
  return Ok{};
}

Status set_draft_tokens(Options& options, const std::string& value) {
  ASSIGN_OR_RETURN(options.speculation.draft_tokens,
                   parse_integer(value, 1, program::kMaxWindowRows - 1));
  return Ok{};
}

Status set_packed_cache(Options& options, const std::string& value) {
  if (value.empty()) return bad_value("a folder, or off", value);
  options.packed_cache = value;
  return Ok{};
}

Status add_logit_bias(Options& options, const std::string& value) {
  const std::string expected = "TOKEN=BIAS, like 42=-100";
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return bad_value(expected, value);
  ASSIGN_OR_RETURN(const auto token, parse_number<TokenId>(value.substr(0, equals), expected));
  ASSIGN_OR_RETURN(const auto bias, parse_number<float>(value.substr(equals + 1), expected));
  options.logit_bias.push_back({token, bias});
  return Ok{};
}

Status add_variable(Options& options, const std::string& value) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0) {
    return bad_value("NAME=VALUE, like enable_thinking=false", value);
  }
  options.variables.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  return Ok{};
}

using enum FlagGroup;
constexpr uint32_t kAnswers = kRun | kChat;
constexpr uint32_t kComputes = kRun | kChat | kScore | kDump | kInfo | kBench;
constexpr uint32_t kReadsText = kRun | kTokenize | kTemplate | kScore;
constexpr uint32_t kTemplates = kRun | kChat | kTemplate;

// In the order of the help.
constexpr Flag kFlags[] = {
    {"--model", "-m", "PATH", kInput, kEveryCommand,
     "GGUF file, safetensors file, or directory of a model", set_text<&Options::model>},
    {"--file", "-f", "PATH", kInput, kReadsText, "read the text from a file",
     set_text<&Options::file>},
    {"--ids-file", "", "PATH", kInput, kScore,
     "score token ids instead of text: a JSON list, or what 'tokenize --json' prints",
     set_text<&Options::ids_file>},
    {"--system", "-s", "TEXT", kInput, kAnswers, "system message in front of the conversation",
     set_text<&Options::system>},
    {"--raw", "", "", kInput, kRun, "continue the prompt as it is, without the chat template",
     set_switch<&Options::raw>},
    {"--tools", "", "PATH", kInput, kRun | kTemplate,
     "JSON list of tool descriptions for the template", set_text<&Options::tools_file>},
    {"--set", "", "NAME=VALUE", kInput, kTemplates,
     "variable of the template, JSON or else a string (repeatable)", add_variable},
    {"--no-generation-prompt", "", "", kInput, kTemplate, "end after the last message",
     set_switch<&Options::no_generation_prompt>},
    {"--no-special", "", "", kInput, kTokenize | kScore, "add no BOS and EOS tokens",
     set_switch<&Options::no_special>},
    {"--decode", "", "", kInput, kTokenize, "the other way round: text of a list of token ids",
     set_switch<&Options::decode>},

    {"--greedy", "", "", kAnswer, kAnswers, "always the most probable token",
     set_switch<&Options::greedy>},
    {"--temperature", "-t", "X", kAnswer, kAnswers, "0 is greedy, 1 the model's own distribution",
     set_number<&Options::temperature>},
    {"--top-k", "", "N", kAnswer, kAnswers, "draw from the N best tokens; 0 is off",
     set_integer<&Options::top_k, 0>},
    {"--top-p", "", "P", kAnswer, kAnswers,
     "draw from the fewest best tokens that make up P; 1 is off", set_number<&Options::top_p>},
    {"--min-p", "", "P", kAnswer, kAnswers,
     "drop tokens less probable than P times the best; 0 is off", set_number<&Options::min_p>},
    {"--repetition-penalty", "", "X", kAnswer, kAnswers,
     "divide scores of tokens seen before; 1 is off", set_number<&Options::repetition_penalty>},
    {"--presence-penalty", "", "X", kAnswer, kAnswers,
     "subtract X from tokens of the answer; 0 is off", set_number<&Options::presence_penalty>},
    {"--frequency-penalty", "", "X", kAnswer, kAnswers,
     "subtract X for each time a token was used in the answer; 0 is off",
     set_number<&Options::frequency_penalty>},
    {"--logit-bias", "", "ID=BIAS", kAnswer, kAnswers,
     "add BIAS to the score of token ID (repeatable)", add_logit_bias},
    {"--seed", "", "N", kAnswer, kAnswers, "the same seed gives the same answer; random by default",
     set_integer<&Options::seed, 0>},
    {"--max-tokens", "-n", "N", kAnswer, kAnswers | kBench,
     "end the answer after N tokens; by default the context is the limit",
     set_integer<&Options::max_tokens, 0>},
    {"--stop", "", "TEXT", kAnswer, kAnswers, "end the answer before TEXT (repeatable)",
     add_text<&Options::stops>},
    {"--logprobs", "", "N", kAnswer, kRun,
     "with --json: log-probabilities of each token and of the N best",
     set_integer<&Options::logprobs, 0, engine::kMaxLogprobs>},

    {"--drafter", "", "PATH", kEngine, kAnswers, "DSpark checkpoint that guesses for --speculate",
     set_text<&Options::drafter>},
    {"--speculate", "", "MODE", kAnswer, kAnswers,
     "guess tokens and verify them in one call: off, chain, tree or auto (default)",
     set_speculation},
    {"--draft-tokens", "", "N", kAnswer, kAnswers,
     "guesses of a call: of a chain or tree (default 16), at most with auto", set_draft_tokens},
    {"--explain", "", "", kAnswer, kRun, "say on stderr what speculation did and why",
     set_switch<&Options::explain>},

    {"--unit", "", "NAME", kEngine, kComputes, "what computes: cpu or reference", set_unit},
    {"--kernels", "", "NAME", kEngine, kComputes,
     "force a kernel set of the unit (see espalier doctor)", set_kernels},
    {"--weights", "", "MODE", kEngine, kComputes,
     "fp16, bf16 and fp32 checkpoints: int8 (default), int8g64 or keep", set_weights},
    {"--activations", "", "BITS", kEngine, kComputes, "16 (default) or 8",
     set_bits<&Options::activations>},
    {"--kv", "", "BITS", kEngine, kComputes,
     "16 (default) or 8: precision of the KV cache on the cpu unit", set_bits<&Options::kv_bits>},
    {"--window", "", "ROWS", kEngine, kComputes, "tokens of one call of the model (default 64)",
     set_integer<&Options::window, 1, program::kMaxWindowRows>},
    {"--context", "", "N", kEngine, kComputes, "longest text in tokens; by default the model's",
     set_integer<&Options::context, 1>},
    {"--packed-cache", "", "DIR", kEngine, kComputes | kDoctor,
     "keep packed weights there; off: nowhere (default ~/.cache/espalier/packed)",
     set_packed_cache},
    {"--threads", "", "N", kEngine, kComputes, "by default the number of physical cores",
     set_integer<&Options::threads, 1, kMaxThreads>},

    {"--json", "", "", kOutput, kEveryCommand & ~(kChat | kDump), "one JSON object on stdout",
     set_switch<&Options::json>},
    {"--output", "-o", "PATH", kOutput, kDump, "safetensors file to write",
     set_text<&Options::output>},
    {"--program", "", "", kOutput, kInfo, "print the program of a window",
     set_switch<&Options::program>},
    {"--rounds", "", "N", kOutput, kBench, "measure everything N times, in turns (default 5)",
     set_integer<&Options::rounds, 1, 1000>},
    {"--help", "-h", "", kOutput, kEveryCommand, "this text", set_switch<&Options::help>},
};

}  // namespace

std::span<const Flag> all_flags() { return kFlags; }

}  // namespace espalier::cli
