#include "tests/cli/espalier_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "espalier/base/mapped_file.h"
#include "tests/support/temporary_directory.h"

namespace espalier::cli {
namespace {

[[noreturn]] void become_espalier(const std::vector<std::string>& arguments,
                                  const TemporaryDirectory& directory, int output) {
  dup2(open((directory / "in").c_str(), O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(open((directory / "err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
  std::vector<char*> words;
  std::string program = ESPALIER_BINARY_DIR "/bin/espalier";
  words.push_back(program.data());
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  execv(program.c_str(), words.data());
  _exit(127);
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
  directory.write("in", options.input);
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    become_espalier(arguments, directory, ends[1]);
  }
  close(ends[1]);
  Outcome outcome;
  if (!options.close_output)
    outcome.out = read_all(ends[0], options.interrupt_on_output ? child : 0);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  outcome.err = read_text_file(directory / "err").value();
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
