#include "bench/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "espalier/base/atomic_file.h"

namespace espalier::bench {
namespace {

constexpr int kDone = 0, kFailed = 1, kUsage = 2;

Error bad_value(std::string expected, const std::string& value) {
  return Error{.what = "the value is not usable",
               .expected = std::move(expected),
               .actual = fmt::format("'{}'", value),
               .fix = "See --help."};
}

void print_help(std::string_view summary, std::span<const Flag> flags) {
  fmt::print("{}\n\n", summary);
  for (const Flag& flag : flags) {
    fmt::print("  {:<24} {}\n", fmt::format("{} {}", flag.name, flag.value), flag.help);
  }
}

Status set_flag(std::span<const Flag> flags, const std::string& name, const std::string* value) {
  const auto flag = std::ranges::find(flags, name, &Flag::name);
  if (flag == flags.end()) {
    std::vector<std::string_view> names;
    for (const Flag& known : flags) names.push_back(known.name);
    return Error{.what = fmt::format("no flag '{}'", name),
                 .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                 .actual = "",
                 .fix = "See --help."};
  }
  if (value == nullptr) {
    return Error{.what = fmt::format("{} has no value", name),
                 .expected = std::string(flag->value),
                 .actual = "nothing",
                 .fix = "See --help."};
  }
  const Status set = flag->set(*value);
  return set.ok() ? set : set.error().with_context(name);
}

Status write_rows(const std::string& path, const OrderedJson& rows) {
  std::string text = "[";
  for (const OrderedJson& row : rows) {
    text += fmt::format("{}\n{}", text.size() > 1 ? "," : "", row.dump());
  }
  text += "\n]\n";
  ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  RETURN_IF_ERROR(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

int complain(const Error& error, int exit_code) {
  fmt::print(stderr, "error: {}\n", error.message());
  return exit_code;
}

}  // namespace

FlagSetter text(std::string& out) {
  return [&out](const std::string& value) -> Status {
    out = value;
    return Ok{};
  };
}

FlagSetter integer(int64_t& out, int64_t lowest, int64_t highest) {
  return [=, &out](const std::string& value) -> Status {
    ASSIGN_OR_RETURN(out, parse_integer(value, lowest, highest));
    return Ok{};
  };
}

FlagSetter integers(std::vector<int64_t>& out, int64_t lowest, int64_t highest) {
  return [=, &out](const std::string& value) -> Status {
    out.clear();
    for (const std::string& part : split_list(value)) {
      ASSIGN_OR_RETURN(const int64_t number, parse_integer(part, lowest, highest));
      out.push_back(number);
    }
    return Ok{};
  };
}

FlagSetter one_of(std::string& out, std::vector<std::string_view> names) {
  return [names = std::move(names), &out](const std::string& value) -> Status {
    if (std::ranges::find(names, value) == names.end()) {
      return bad_value(fmt::format("{}", fmt::join(names, " or ")), value);
    }
    out = value;
    return Ok{};
  };
}

Result<int64_t> parse_integer(const std::string& value, int64_t lowest, int64_t highest) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (whole && number >= lowest && number <= highest) return number;
  return bad_value(fmt::format("a whole number from {} to {}", lowest, highest), value);
}

std::vector<std::string> split_list(const std::string& value) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    parts.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

int run_command(std::span<char* const> words, std::string_view summary, std::vector<Flag> flags,
                const std::function<Result<OrderedJson>()>& measure) {
  std::string json_path;
  flags.push_back({"--json", "FILE", "also write all rows as a JSON list", text(json_path)});
  for (size_t i = 1; i < words.size(); i += 2) {
    const std::string name = words[i];
    if (name == "--help" || name == "-h") {
      print_help(summary, flags);
      return kDone;
    }
    const std::string value = i + 1 < words.size() ? words[i + 1] : "";
    const Status set = set_flag(flags, name, i + 1 < words.size() ? &value : nullptr);
    if (!set.ok()) return complain(set.error(), kUsage);
  }
  const Result<OrderedJson> rows = measure();
  if (!rows.ok()) return complain(rows.error(), kFailed);
  if (json_path.empty()) return kDone;
  const Status written = write_rows(json_path, *rows);
  return written.ok() ? kDone : complain(written.error(), kFailed);
}

}  // namespace espalier::bench
