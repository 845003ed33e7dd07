#include "espalier/cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "espalier/base/mapped_file.h"
#include "espalier/base/utf8.h"
#include "espalier/cli/terminal.h"

namespace espalier::cli {
namespace {

constexpr size_t kInputLimit = size_t{256} << 20;  // bytes, as read_text_file

}  // namespace

Result<std::string> read_standard_input() {
  std::string text;
  char bytes[1 << 16];
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count == 0) return text;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 || text.size() + static_cast<size_t>(count) > kInputLimit) {
      return Error{.what = "standard input cannot be used",
                   .expected = fmt::format("at most {} bytes", kInputLimit),
                   .actual = count < 0 ? std::strerror(errno) : "more",
                   .fix = "Give the text as an argument or with --file."};
    }
    text.append(bytes, static_cast<size_t>(count));
  }
}

Result<std::string> read_input(const Options& options, const std::string& what) {
  if (options.file && *options.file != "-") return read_text_file(*options.file);
  if (!options.arguments.empty() && options.arguments[0] != "-") return options.arguments[0];
  if (options.arguments.empty() && !options.file && stdin_is_terminal()) {
    return Error{.what = fmt::format("there is no {}", what),
                 .expected = "an argument, --file, or a pipe",
                 .actual = "nothing",
                 .fix = "See --help."};
  }
  return read_standard_input();
}

Status check_utf8(std::string_view text, const std::string& what) {
  const std::optional<size_t> offset = invalid_utf8_at(text);
  if (!offset) return Ok{};
  return Error{.what = fmt::format("the {} is not UTF-8", what),
               .expected = "valid UTF-8",
               .actual = fmt::format("byte 0x{:02X} at offset {}",
                                     static_cast<uint8_t>(text[*offset]), *offset),
               .fix = "Convert the text to UTF-8."};
}

}  // namespace espalier::cli
