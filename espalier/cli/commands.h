// The commands: one struct each, one table of all; each is a file, command_<name>.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "espalier/base/result.h"
#include "espalier/cli/options.h"

namespace espalier::cli {

// How a command ended, as the process's exit code. Errors are kFailed, wrong use of the command
// line kUsage.
enum class Exit : int { kDone = 0, kFailed = 1, kUsage = 2 };

struct Command {
  std::string_view name;
  uint32_t bit;                // CommandBit
  std::string_view arguments;  // "[PROMPT]"
  int max_arguments;
  std::string_view summary;  // one line
  std::string_view description;
  bool needs_model;
  Status (*check)(const Options& options);  // of wrong use; null: nothing to check
  Result<Exit> (*run)(const Options& options);
};

std::span<const Command> all_commands();

Status check_run(const Options& options);
Status check_score(const Options& options);
Status check_dump(const Options& options);

Result<Exit> command_run(const Options& options);
Result<Exit> command_chat(const Options& options);
Result<Exit> command_tokenize(const Options& options);
Result<Exit> command_template(const Options& options);
Result<Exit> command_score(const Options& options);
Result<Exit> command_dump(const Options& options);
Result<Exit> command_info(const Options& options);
Result<Exit> command_bench(const Options& options);
Result<Exit> command_doctor(const Options& options);

}  // namespace espalier::cli
