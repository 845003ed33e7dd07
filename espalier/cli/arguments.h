// Command line -> command and options. Unknown words are errors with a suggestion, never ignored.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/cli/commands.h"
#include "espalier/cli/options.h"

namespace espalier::cli {

struct Invocation {
  const Command* command = nullptr;  // null: help for the whole tool
  bool wants_version = false;
  Options options;
};

// `words` without the program's name. "--flag value", "--flag=value", "-f value"; "--" ends the
// flags.
Result<Invocation> parse_arguments(std::span<const std::string> words);

// The candidate that `word` was probably meant to be, or "".
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace espalier::cli
