// Filters that choose: by test, by attribute, by being defined (declared in filter_functions.h).
#include <fmt/format.h>

#include "espalier/text/jinja/filter_functions.h"

namespace espalier::text::jinja::filters {
namespace {

// select, reject, selectattr, rejectattr: lazy in jinja2, so errors surface when the result is
// read.
Result<Value> choose(Machine& machine, const Value& value, const Bound& arguments,
                     bool by_attribute, bool wanted) {
  const Values& rest = arguments.rest();
  if (!is_true(value)) return Value::iterator({});
  const size_t skipped = by_attribute ? 1 : 0;
  if (rest.size() < skipped) return type_error("no attribute to choose by", "its name", Value());
  const auto passes = [&](const Value& item) -> Result<bool> {
    Value subject = item;
    if (by_attribute) {
      ASSIGN_OR_RETURN(subject, machine.attribute_path(item, rest[0]));
    }
    if (rest.size() == skipped) return is_true(subject) == wanted;
    const Value& name = rest[skipped];
    if (!name.is(Kind::kString)) return type_error("the name of a test", "str", name);
    const Arguments test_arguments{
        Values(rest.begin() + static_cast<int64_t>(skipped) + 1, rest.end()),
        arguments.named_rest()};
    ASSIGN_OR_RETURN(const bool result, machine.test(name.text().bytes(), subject, test_arguments));
    return result == wanted;
  };
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  Values kept;
  for (const Value& item : items) {
    RETURN_IF_ERROR(machine.budget.spend(Budget::kStepBytes));
    const auto pass = passes(item);
    if (!pass.ok()) return Value::iterator(std::move(kept), pass.error());
    if (*pass) kept.push_back(item);
  }
  return Value::iterator(std::move(kept));
}

const Value* find_named(const Bound& arguments, std::string_view name) {
  for (const auto& [key, value] : arguments.named_rest()) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace

Result<Value> select(Machine& machine, const Value& value, const Bound& arguments) {
  return choose(machine, value, arguments, false, true);
}
Result<Value> reject(Machine& machine, const Value& value, const Bound& arguments) {
  return choose(machine, value, arguments, false, false);
}
Result<Value> selectattr(Machine& machine, const Value& value, const Bound& arguments) {
  return choose(machine, value, arguments, true, true);
}
Result<Value> rejectattr(Machine& machine, const Value& value, const Bound& arguments) {
  return choose(machine, value, arguments, true, false);
}

Result<Value> map(Machine& machine, const Value& value, const Bound& arguments) {
  if (!is_true(value)) return Value::iterator({});
  const Values& rest = arguments.rest();
  const Value* attribute = find_named(arguments, "attribute");
  const bool by_attribute = rest.empty() && attribute != nullptr;
  const Value* fallback = find_named(arguments, "default");
  const auto transform = [&](const Value& item) -> Result<Value> {
    if (by_attribute) {
      return machine.attribute_path(item, *attribute, fallback == nullptr ? Value() : *fallback);
    }
    if (!rest[0].is(Kind::kString)) return type_error("the name of a filter", "str", rest[0]);
    return machine.filter(rest[0].text().bytes(), item,
                          Arguments{Values(rest.begin() + 1, rest.end()), arguments.named_rest()});
  };
  if (rest.empty() && !by_attribute) {
    return Value::iterator(
        {}, type_error("map has nothing to apply", "a filter's name or attribute=", Value()));
  }
  const size_t known = fallback != nullptr ? 2 : 1;
  if (by_attribute && arguments.named_rest().size() > known) {
    return Value::iterator(
        {}, type_error("map has an unknown argument", "attribute and default", Value()));
  }
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  Values mapped;
  for (const Value& item : items) {
    RETURN_IF_ERROR(machine.budget.spend(Budget::kStepBytes));
    auto result = transform(item);
    if (!result.ok()) return Value::iterator(std::move(mapped), result.error());
    mapped.push_back(std::move(result).value());
  }
  return Value::iterator(std::move(mapped));
}

Result<Value> attribute(Machine& machine, const Value& value, const Bound& arguments) {
  const Value& name = arguments.value(0);
  if (!name.is(Kind::kString)) return type_error("the name of an attribute", "str", name);
  ASSIGN_OR_RETURN(std::optional<Value> found, machine.own_attribute(value, name.text().bytes()));
  if (found.has_value()) return std::move(*found);
  return Value::undefined(
      fmt::format("'{} object' has no attribute '{}'", type_name(value), name.text().bytes()));
}

Result<Value> default_value(Machine&, const Value& value, const Bound& arguments) {
  const bool replaced =
      value.is(Kind::kUndefined) || (arguments.truth_or(1, false) && !is_true(value));
  if (!replaced) return value;
  return arguments.value(0, Value::literal(""));
}

Result<Value> items(Machine& machine, const Value& value, const Bound&) {
  if (value.is(Kind::kUndefined)) return Value::iterator({});
  if (!value.is(Kind::kDict))
    return Value::iterator({}, type_error("items wants a dict", "dict", value));
  RETURN_IF_ERROR(machine.budget.spend(value.dict().entries.size(), Budget::kStepBytes));
  Values pairs;
  for (const auto& [key, content] : value.dict().entries)
    pairs.push_back(Value::tuple({key, content}));
  return Value::iterator(std::move(pairs));
}

}  // namespace espalier::text::jinja::filters
