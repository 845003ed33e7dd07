// espalier: the command line tool. Parses, runs one command, and turns its result into an exit
// code.
#include <csignal>
#include <string>
#include <vector>

#include "espalier/cli/arguments.h"
#include "espalier/cli/help.h"
#include "espalier/cli/terminal.h"
#include "espalier/cli/version.h"

namespace espalier::cli {
namespace {

Exit run(const std::vector<std::string>& words) {
  const auto invocation = parse_arguments(words);
  if (!invocation.ok()) {
    complain(invocation.error().message());
    return Exit::kUsage;
  }
  if (invocation->wants_version) {
    write_stdout(version_text());
    return Exit::kDone;
  }
  const Command* command = invocation->command;
  if (command == nullptr || invocation->options.help) {
    const std::string help = command == nullptr ? help_text() : help_text(*command);
    write_stdout(help);
    return Exit::kDone;
  }
  const Result<Exit> result = command->run(invocation->options);
  const Status output = output_status();
  if (result.ok() && output.ok()) return *result;
  complain(result.ok() ? output.error().message() : result.error().message());
  return Exit::kFailed;
}

}  // namespace
}  // namespace espalier::cli

int main(int argc, char** argv) {
  // A reader that leaves, and a file beyond the limit of its size, are seen where we write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(espalier::cli::run(words));
}
