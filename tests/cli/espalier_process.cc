#include "tests/cli/espalier_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "espalier/base/mapped_file.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

template <typename Resource>
void limit(Resource resource, uint64_t bytes) {
  const rlimit both{bytes, bytes};
  if (bytes > 0) setrlimit(resource, &both);
}

[[noreturn]] void become_espalier(const std::vector<std::string>& arguments,
                                  const ProcessOptions& options, int input, int output, int error) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  if (options.output_is_full) dup2(input, STDOUT_FILENO);  // open for reading only
  limit(RLIMIT_FSIZE, options.file_bytes);
  limit(RLIMIT_AS, options.address_bytes);
  const auto pointers = [](const std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
    list.push_back(nullptr);
    return list;
  };
  std::vector<std::string> words = {ESPALIER_BINARY_DIR "/bin/espalier"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  execve(words[0].c_str(), pointers(words).data(), pointers(options.environment).data());
  _exit(127);
}

// A pseudo-terminal: what is written to the second end can be read from the first.
std::pair<int, int> open_terminal() {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_EQ(grantpt(ours), 0);
  EXPECT_EQ(unlockpt(ours), 0);
  return {ours, open(ptsname(ours), O_RDWR | O_NOCTTY)};
}

std::string read_all(int descriptor, pid_t interrupted) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = read(descriptor, bytes, sizeof bytes)) > 0;) {
    if (text.empty() && interrupted > 0) kill(interrupted, SIGINT);
    text.append(bytes, static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

Outcome run_espalier(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  const TemporaryDirectory directory;
  const int input = open(directory.write("in", options.input).c_str(), O_RDONLY);
  const auto [terminal, error] =
      options.terminal ? open_terminal()
                       : std::pair(-1, open((directory / "err").c_str(), O_RDWR | O_CREAT, 0600));
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    become_espalier(arguments, options, input, ends[1], error);
  }
  close(ends[1]);
  close(input);
  Outcome outcome;
  if (!options.close_output) {
    outcome.out = read_all(ends[0], options.interrupt_on_output ? child : 0);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  close(error);
  outcome.err =
      options.terminal ? read_all(terminal, 0) : read_text_file(directory / "err").value();
  if (options.terminal) close(terminal);
  return outcome;
}

Json json_of(const std::vector<std::string>& arguments, const std::string& input) {
  const Outcome outcome = run_espalier(arguments, {.input = input});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1) << outcome.out;
  auto json = parse_json(outcome.out, "stdout");
  EXPECT_TRUE(json.ok()) << outcome.out;
  return json.ok() ? *json : Json();
}

std::string tiny_chat() { return ESPALIER_SOURCE_DIR "/tests/golden/tiny_chat"; }

Json expected() {
  const std::string path = tiny_chat() + "/expected.json";
  return parse_json(read_text_file(path).value(), path).value();
}

std::vector<std::string> exact(std::vector<std::string> arguments) {
  for (const char* word : {"-m", "MODEL", "--unit", "reference", "--weights", "keep"}) {
    arguments.emplace_back(word == std::string("MODEL") ? tiny_chat() : word);
  }
  return arguments;
}

}  // namespace espalier::cli
