// espalier: the command line tool. Parses, runs one command, and turns its result into an exit
// code.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/cli/arguments.h"
#include "espalier/cli/help.h"
#include "espalier/cli/terminal.h"
#include "espalier/cli/version.h"

namespace espalier::cli {
namespace {

Result<Exit> answer(const Invocation& invocation) {
  const Command* command = invocation.command;
  if (invocation.wants_version) {
    write_stdout(version_text());
  } else if (command == nullptr) {
    write_stdout(help_text());
  } else if (invocation.options.help) {
    write_stdout(help_text(*command));
  } else {
    return command->run(invocation.options);
  }
  return Exit::kDone;
}

Exit run(const std::vector<std::string>& words) {
  const auto invocation = parse_arguments(words);
  if (!invocation.ok()) {
    complain(invocation.error().message());
    return Exit::kUsage;
  }
  const Result<Exit> result = answer(*invocation);
  const Status output = output_status();
  if (result.ok() && output.ok()) return *result;
  complain(result.ok() ? output.error().message() : result.error().message());
  return Exit::kFailed;
}

// Where memory ends in a place that does not expect it, nothing can go on; the user is told all the
// same. Places that can say more catch it themselves.
[[noreturn]] void end_without_memory() {
  constexpr std::string_view kText =
      "error: no memory is left. Close other programs, or use a smaller model or --context.\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
  std::_Exit(static_cast<int>(Exit::kFailed));
}

// The JSON library's destructors allocate, and what they throw can be caught by nobody.
[[noreturn]] void on_terminate() {
  const std::exception_ptr exception = std::current_exception();
  if (exception == nullptr) end_without_memory();  // not even for the exception
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    end_without_memory();
  } catch (...) {  // a bug
  }
  std::abort();
}

Exit run_or_complain(int argc, char** argv) try {
  return run(std::vector<std::string>(argv + 1, argv + argc));
} catch (const std::bad_alloc&) {
  end_without_memory();
} catch (const std::exception& exception) {  // threads, say
  complain(std::string("something failed that should not: ") + exception.what());
  return Exit::kFailed;
}

}  // namespace
}  // namespace espalier::cli

int main(int argc, char** argv) {
  // A reader that leaves, and a file beyond the limit of its size, are seen where we write.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::set_terminate(espalier::cli::on_terminate);
  return static_cast<int>(espalier::cli::run_or_complain(argc, argv));
}
