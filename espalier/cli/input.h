// Where a command's text comes from: its argument, --file, or standard input.
#pragma once

#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/cli/options.h"

namespace espalier::cli {

// Argument or --file, else standard input, byte for byte. "-" means standard input. An error where
// that is a terminal; `what` names the text ("prompt").
Result<std::string> read_input(const Options& options, const std::string& what);
Result<std::string> read_standard_input();

// An error that names the byte offset where `text` stops being UTF-8.
Status check_utf8(std::string_view text, const std::string& what);

}  // namespace espalier::cli
