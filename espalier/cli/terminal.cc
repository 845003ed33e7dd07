#include "espalier/cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "espalier/base/utf8.h"

namespace espalier::cli {
namespace {

int stdout_error = 0;  // errno of the first write that failed

bool has_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) != 0 && (no_colour == nullptr || *no_colour == '\0') &&
         (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

void say(std::string_view style, std::string_view label, std::string_view text) {
  const bool colour = has_colour(STDERR_FILENO);
  const std::string line =
      fmt::format("{}{}{}{}", colour ? style : "", label, colour ? "\033[0m" : "", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

bool write_stdout(std::string_view text) {
  while (!text.empty() && stdout_error == 0) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      stdout_error = errno;
    }
  }
  return stdout_error == 0;
}

Status output_status() {
  if (stdout_error == 0 || stdout_error == EPIPE) return Ok{};
  return Error{.what = "writing to standard output failed",
               .expected = "",
               .actual = std::strerror(stdout_error),
               .fix = "Check where the output goes, and the space there."};
}

bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }

// Texts quote what files and arguments say.
void note(std::string_view text) { say("\033[33m", "note: ", printable(text) + "\n"); }
void complain(std::string_view text) { say("\033[31m", "error: ", printable(text) + "\n"); }
void remark(std::string_view text) {
  if (isatty(STDERR_FILENO) != 0) say("\033[2m", printable(text), "\n");
}
void ask(std::string_view text) {
  if (stdin_is_terminal()) say("\033[1m", text, "");
}

std::optional<std::string> read_line(bool& interrupted) {
  // Read by hand: streams of the library hide that a signal came.
  static std::string buffered;
  interrupted = false;
  for (;;) {
    const size_t end = buffered.find('\n');
    if (end != std::string::npos) {
      std::string line = buffered.substr(0, end);
      buffered.erase(0, end + 1);
      return line;
    }
    char bytes[4096];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count > 0) {
      buffered.append(bytes, static_cast<size_t>(count));
    } else if (count < 0 && errno == EINTR) {
      interrupted = true;
      return "";
    } else {
      if (buffered.empty()) return std::nullopt;
      return std::exchange(buffered, "");
    }
  }
}

}  // namespace espalier::cli
