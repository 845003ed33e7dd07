#include "espalier/cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "espalier/cli/flags.h"

namespace espalier::cli {
namespace {

// Levenshtein: insertions, deletions and replacements between two short words.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates,
                       std::string_view help) {
  const std::string_view near = nearest(word, candidates);
  return near.empty() ? fmt::format("See '{}'.", help)
                      : fmt::format("Did you mean '{}'? See '{}'.", near, help);
}

Result<const Command*> find_command(const std::string& word) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) {
    if (command.name == word) return &command;
    names.push_back(command.name);
  }
  return Error{.what = fmt::format("unknown command '{}'", word),
               .expected = "",
               .actual = "",
               .fix = suggestion(word, names, "espalier --help")};
}

Result<const Flag*> find_flag(const Command& command, const std::string& word) {
  std::vector<std::string_view> names;
  for (const Flag& flag : all_flags()) {
    if ((flag.commands & command.bit) == 0) continue;
    if (word == flag.name || word == flag.letter) return &flag;
    names.push_back(flag.name);
  }
  return Error{.what = fmt::format("'espalier {}' has no flag '{}'", command.name, word),
               .expected = "",
               .actual = "",
               .fix = suggestion(word, names, fmt::format("espalier {} --help", command.name)) +
                      " Text that begins with '-' goes after '--'."};
}

// Wrong use that every command has in common, then the command's own.
Status check_use(const Command& command, const Options& options) {
  const auto count = static_cast<int>(options.arguments.size());
  if (count > command.max_arguments) {
    return Error{.what = fmt::format("too many arguments for 'espalier {}'", command.name),
                 .expected = fmt::format("at most {}", command.max_arguments),
                 .actual = fmt::format("{}: '{}'", count, options.arguments.back()),
                 .fix = "Put text with blanks in it between quotes."};
  }
  if (count > 0 && options.file) {
    return Error{.what = "the text was given twice",
                 .expected = "an argument or --file",
                 .actual = "both",
                 .fix = "Leave one out."};
  }
  if (command.needs_model && options.model.empty()) {
    return Error{.what = "no model was given",
                 .expected = "--model PATH (-m)",
                 .actual = "",
                 .fix = "Name a GGUF file or a model directory; './dev run' brings a model."};
  }
  return command.check == nullptr ? Status(Ok{}) : command.check(options);
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(word.size() / 3, 2) + 1;  // farther is another word
  for (const std::string_view candidate : candidates) {
    // What was begun and not finished is near too: "--temp".
    const size_t distance =
        word.size() >= 4 && candidate.starts_with(word) ? 1 : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Result<Invocation> parse_arguments(std::span<const std::string> words) {
  Invocation invocation;
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    invocation.options.help = true;
    return invocation;
  }
  if (words[0] == "--version") {
    invocation.wants_version = true;
    return invocation;
  }
  ASSIGN_OR_RETURN(invocation.command, find_command(words[0]));
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--") {
      invocation.options.arguments.insert(invocation.options.arguments.end(),
                                          words.begin() + static_cast<ptrdiff_t>(i) + 1,
                                          words.end());
      break;
    }
    if (words[i].size() < 2 || words[i][0] != '-') {
      invocation.options.arguments.push_back(words[i]);
      continue;
    }
    const size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
    ASSIGN_OR_RETURN(const Flag* flag, find_flag(*invocation.command, words[i].substr(0, equals)));
    const bool has_value = equals != std::string::npos;
    if (flag->value.empty() ? has_value : !has_value && i + 1 == words.size()) {
      return Error{
          .what = fmt::format("{} {} value", flag->name, has_value ? "takes no" : "needs a"),
          .expected = flag->value.empty() ? std::string(flag->name)
                                          : fmt::format("{} {}", flag->name, flag->value),
          .actual = words[i],
          .fix = "See --help."};
    }
    const std::string value = has_value             ? words[i].substr(equals + 1)
                              : flag->value.empty() ? ""
                                                    : words[++i];
    const Status status = flag->set(invocation.options, value);
    if (!status.ok()) return status.error().with_context(std::string(flag->name));
  }
  if (!invocation.options.help) {
    RETURN_IF_ERROR(check_use(*invocation.command, invocation.options));
  }
  return invocation;
}

}  // namespace espalier::cli
