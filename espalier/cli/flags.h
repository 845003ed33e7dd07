// The flags: one struct each, one table of all. Parsing, help, suggestions and the list of commands
// that take a flag all come from its row; adding a flag is a field of Options and a row here.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/cli/options.h"

namespace espalier::cli {

// Commands as a set, for the rows of the flag table.
enum CommandBit : uint32_t {
  kRun = 1 << 0,
  kChat = 1 << 1,
  kTokenize = 1 << 2,
  kTemplate = 1 << 3,
  kScore = 1 << 4,
  kDump = 1 << 5,
  kInfo = 1 << 6,
  kBench = 1 << 7,
  kDoctor = 1 << 8,
  kEveryCommand = (1 << 9) - 1,
};

enum class FlagGroup : uint8_t { kInput, kAnswer, kEngine, kOutput };

struct Flag {
  std::string_view name;    // "--max-tokens"
  std::string_view letter;  // "-n", or ""
  std::string_view value;   // placeholder of its value; "" for a switch
  FlagGroup group;
  uint32_t commands;  // those that take it
  std::string_view help;
  // Writes `value` (of a switch: "") into the options, or says what it should have been.
  Status (*set)(Options& options, const std::string& value);
};

std::span<const Flag> all_flags();

}  // namespace espalier::cli
