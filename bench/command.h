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

struct Flag {
  std::string_view name;   // "--rows"
  std::string_view value;  // placeholder of its value in the help
  std::string_view help;
  // Keeps the value, or says what it should have been.
  std::function<Status(const std::string& value)> set;
};

// For the `set` of a flag.
Status set_integer(int64_t& out, int64_t lowest, int64_t highest, const std::string& value);
Status set_integers(std::vector<int64_t>& out, int64_t lowest, int64_t highest,
                    const std::string& value);  // "1,4,64"
Status set_one_of(std::string& out, std::span<const std::string_view> names,
                  const std::string& value);

// Rows are a JSON list. `measure` runs when all flags are understood.
int run_command(std::span<char* const> words, std::string_view summary, std::vector<Flag> flags,
                const std::function<Result<OrderedJson>()>& measure);

}  // namespace espalier::bench
