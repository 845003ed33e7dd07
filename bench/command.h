// A benchmark as a command: flags from one table, rows as they come on stdout, and the list of all
// rows as JSON in the file that --json names. Exit codes are espalier's: 0, 1 failed, 2 wrong use.
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"

namespace espalier::bench {

// Keeps the value of a flag, or says what it should have been.
using FlagSetter = std::function<Status(const std::string& value)>;

struct Flag {
  std::string_view name;   // "--rows"
  std::string_view value;  // placeholder of its value in the help
  std::string help;
  FlagSetter set;
};

// `out` must outlive the command.
FlagSetter text(std::string& out);
FlagSetter integer(int64_t& out, int64_t lowest, int64_t highest);
FlagSetter integers(std::vector<int64_t>& out, int64_t lowest, int64_t highest);  // "1,4,64"
FlagSetter one_of(std::string& out, std::vector<std::string_view> names);

Result<int64_t> parse_integer(const std::string& value, int64_t lowest, int64_t highest);
std::vector<std::string> split_list(const std::string& value);  // at commas

// Rows are a JSON list. `measure` runs when all flags are understood.
int run_command(std::span<char* const> words, std::string_view summary, std::vector<Flag> flags,
                const std::function<Result<OrderedJson>()>& measure);

}  // namespace espalier::bench
