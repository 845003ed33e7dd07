#include "espalier/text/jinja/binding.h"

#include <fmt/format.h>

namespace espalier::text::jinja {
namespace {

Error wrong_arguments(std::string_view callee, std::string expected, std::string actual) {
  return Error{.what = fmt::format("wrong arguments for '{}'", callee),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Correct the call."};
}

struct ParameterList {
  std::vector<std::string_view> names;  // with the "_" of positional only ones
  size_t required = 0;
  bool star = false, double_star = false;
};

ParameterList read_parameters(std::string_view text) {
  ParameterList list;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, space);
    text.remove_prefix(std::min(space + 1, text.size()));
    if (word == "*" || word == "**") {
      (word == "*" ? list.star : list.double_star) = true;
      continue;
    }
    const bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    list.names.push_back(word);
    if (!optional) list.required = list.names.size();
  }
  return list;
}

}  // namespace

const Value& Bound::none() {
  static const Value value{};
  return value;
}

Result<Bound> Bound::bind(std::string_view callee, std::string_view parameters,
                          const Arguments& arguments) {
  const ParameterList list = read_parameters(parameters);
  Bound bound;
  bound.slots_.assign(list.names.size(), nullptr);
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < list.names.size()) {
      bound.slots_[i] = &arguments.positional[i];
    } else if (list.star) {
      bound.rest_.push_back(arguments.positional[i]);
    } else {
      return wrong_arguments(callee, fmt::format("at most {}", list.names.size()),
                             fmt::format("{}", arguments.positional.size()));
    }
  }
  RETURN_IF_ERROR(bound.bind_named(arguments, list.names, list.double_star, callee));
  for (size_t i = 0; i < list.required; ++i) {
    if (!bound.has(i)) {
      return wrong_arguments(callee, fmt::format("the argument '{}'", list.names[i]), "nothing");
    }
  }
  return bound;
}

Status Bound::bind_named(const Arguments& arguments, const std::vector<std::string_view>& names,
                         bool takes_more, std::string_view callee) {
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || name.starts_with('_')) {
      if (!takes_more) return wrong_arguments(callee, "known names", fmt::format("'{}'", name));
      named_rest_.emplace_back(name, value);
      continue;
    }
    const auto index = static_cast<size_t>(found - names.begin());
    if (has(index))
      return wrong_arguments(callee, "each argument once", fmt::format("'{}' twice", name));
    slots_[index] = &value;
  }
  return Ok{};
}

Result<int64_t> Bound::integer(size_t index) const {
  const Value& argument = value(index);
  if (!argument.is_integral()) return type_error("an argument is not an integer", "int", argument);
  return argument.integer();
}

Result<int64_t> Bound::integer_or(size_t index, int64_t fallback) const {
  if (!has(index)) return fallback;
  return integer(index);
}

Result<Text> Bound::text(size_t index) const {
  const Value& argument = value(index);
  if (!argument.is(Kind::kString))
    return type_error("an argument is not a string", "str", argument);
  return argument.text();
}

}  // namespace espalier::text::jinja
