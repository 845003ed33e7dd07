#include "espalier/cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "espalier/cli/flags.h"

namespace espalier::cli {
namespace {

constexpr std::pair<FlagGroup, std::string_view> kGroups[] = {
    {FlagGroup::kInput, "Input"},
    {FlagGroup::kAnswer, "Answer"},
    {FlagGroup::kEngine, "Engine"},
    {FlagGroup::kOutput, "Output"},
};

std::string flag_line(const Flag& flag) {
  const std::string letter = flag.letter.empty() ? "    " : fmt::format("{}, ", flag.letter);
  return fmt::format("  {}{:<30} {}\n", letter, fmt::format("{} {}", flag.name, flag.value),
                     flag.help);
}

}  // namespace

std::string help_text() {
  std::string text =
      "espalier: a local language model engine\n\n"
      "usage: espalier COMMAND -m MODEL [flags]\n\nCommands:\n";
  for (const Command& command : all_commands()) {
    text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  }
  return text +
         "\n'espalier COMMAND --help' explains one, 'espalier --version' says which this is. "
         "stdout is data, stderr is talk;\n"
         "exit codes: 0 done, 1 failed, 2 wrong use.\n";
}

std::string help_text(const Command& command) {
  std::string text = fmt::format(
      "espalier {}: {}\n\nusage: espalier {} [flags]{}{}\n\n{}\n", command.name, command.summary,
      command.name, command.arguments.empty() ? "" : " ", command.arguments, command.description);
  for (const auto& [group, title] : kGroups) {
    std::string lines;
    for (const Flag& flag : all_flags()) {
      if (flag.group == group && (flag.commands & command.bit) != 0) lines += flag_line(flag);
    }
    if (!lines.empty()) text += fmt::format("\n{}:\n{}", title, lines);
  }
  return text;
}

}  // namespace espalier::cli
