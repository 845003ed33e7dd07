#include "espalier/text/jinja/methods.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::text::jinja {
namespace {

Result<Value> list_count(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(self));
  int64_t count = 0;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const bool same, equal(machine.budget, item, arguments.value(0)));
    count += same ? 1 : 0;
  }
  return Value::integer(count);
}

Result<Value> list_index(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(self));
  const auto length = static_cast<int64_t>(items.size());
  const auto clip = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + length : i, 0, length);
  };
  ASSIGN_OR_RETURN(const int64_t start, arguments.integer_or(1, 0));
  ASSIGN_OR_RETURN(const int64_t stop, arguments.integer_or(2, length));
  for (int64_t i = clip(start); i < clip(stop); ++i) {
    ASSIGN_OR_RETURN(const bool same,
                     equal(machine.budget, items[static_cast<size_t>(i)], arguments.value(0)));
    if (same) return Value::integer(i);
  }
  return Error{.what = "a value is not in the list",
               .expected = "one of its elements",
               .actual = "another value",
               .fix = "Test it with 'in' first."};
}

Result<Value> list_copy(Machine& machine, const Value& self, const Bound&) {
  RETURN_IF_ERROR(machine.budget.spend(self.shallow_bytes()));
  return Value::list(self.items());
}

Result<Value> dict_get(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const std::string key, hash_key(machine.budget, arguments.value(0)));
  const Value* found = self.dict().find(key);
  return found != nullptr ? *found : arguments.value(1);
}

Result<Value> dict_copy(Machine& machine, const Value& self, const Bound&) {
  RETURN_IF_ERROR(machine.budget.spend(self.shallow_bytes()));
  return Value::dict(std::make_shared<Dict>(self.dict()));
}

enum class Part { kKeys, kValues, kItems };
template <Part part>
Result<Value> dict_view(Machine& machine, const Value& self, const Bound&) {
  RETURN_IF_ERROR(machine.budget.spend(self.dict().entries.size(), Budget::kStepBytes));
  Values items;
  items.reserve(self.dict().entries.size());
  for (const auto& [key, value] : self.dict().entries) {
    if (part == Part::kKeys) items.push_back(key);
    if (part == Part::kValues) items.push_back(value);
    if (part == Part::kItems) items.push_back(Value::tuple({key, value}));
  }
  const std::string_view name = part == Part::kKeys     ? "dict_keys"
                                : part == Part::kValues ? "dict_values"
                                                        : "dict_items";
  return Value::view(name, std::move(items));
}

constexpr Method kListMethods[] = {
    {"copy", "", list_copy},
    {"count", "_value", list_count},
    {"index", "_value _start? _stop?", list_index},
};

constexpr Method kDictMethods[] = {
    {"copy", "", dict_copy},
    {"get", "_key _default?", dict_get},
    {"items", "", dict_view<Part::kItems>},
    {"keys", "", dict_view<Part::kKeys>},
    {"values", "", dict_view<Part::kValues>},
};

std::span<const Method> methods_of(const Value& self) {
  switch (self.kind()) {
    case Kind::kString:
      return string_methods();
    case Kind::kDict:
      return dict_methods();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return list_methods();
    default:
      return {};
  }
}

Value bind_method(const Method& method, const Value& self) {
  return make_function(
      std::string(method.name),
      [&method, self](Machine& machine, const Arguments& arguments) -> Result<Value> {
        RETURN_IF_ERROR(machine.budget.spend(self.shallow_bytes()));
        ASSIGN_OR_RETURN(const Bound bound, Bound::bind(method.name, method.parameters, arguments));
        ASSIGN_OR_RETURN(Value result, method.apply(machine, self, bound));
        bool from_user = self.from_user();
        for (const Value& argument : arguments.positional) from_user |= argument.from_user();
        if (from_user) result.mark_from_user();
        return result;
      },
      self.depth() + 1);
}

}  // namespace

std::span<const Method> list_methods() { return kListMethods; }
std::span<const Method> dict_methods() { return kDictMethods; }

std::optional<Value> bound_method(const Value& self, std::string_view name) {
  const std::span<const Method> methods = methods_of(self);
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const Method& method) { return method.name == name; });
  if (found == methods.end()) return std::nullopt;
  if (name == "copy" && !self.is(Kind::kList) && !self.is(Kind::kDict)) return std::nullopt;
  return bind_method(*found, self);
}

bool is_forbidden_method(const Value& self, std::string_view name) {
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto contains = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (self.is(Kind::kList) && contains(kList)) || (self.is(Kind::kDict) && contains(kDict));
}

}  // namespace espalier::text::jinja
