#include "espalier/text/jinja/machine.h"

#include <fmt/format.h>

#include "espalier/text/jinja/filters.h"
#include "espalier/text/jinja/methods.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/slicing.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

constexpr size_t kNone = SIZE_MAX;

// Index of a list's element or a text's character; kNone where it lies outside.
size_t resolve_index(int64_t index, size_t length) {
  const auto signed_length = static_cast<int64_t>(length);
  if (index < 0) index += signed_length;
  return index >= 0 && index < signed_length ? static_cast<size_t>(index) : kNone;
}

bool mentions_user(const Value& value, const Arguments& arguments) {
  bool from_user = value.from_user();
  for (const Value& argument : arguments.positional) from_user |= argument.from_user();
  for (const auto& [name, argument] : arguments.named) from_user |= argument.from_user();
  return from_user;
}

// Errors of filters and tests name them, unless they come from deeper inside and have their place
// already.
Error named(const Error& error, std::string_view kind, std::string_view name) {
  if (error.what.starts_with("line ")) return error;
  return error.with_context(fmt::format("{} '{}'", kind, name));
}

std::string object_name(const Value& value) { return fmt::format("'{} object'", type_name(value)); }

}  // namespace

Machine::~Machine() {
  // All of them are still held here while each lets go of what it holds, so nothing is destroyed
  // recursively.
  for (const auto& object : namespaces_) object->attributes = std::make_shared<Dict>();
  for (const auto& object : cycle_breakers_) object->drop_references();
}

Status Machine::Level::check() const {
  if (machine_.level_ <= Budget::kCallDepth) return machine_.budget.spend(Budget::kStepBytes);
  return Error{.what = "the template calls itself too deeply",
               .expected = fmt::format("at most {} levels", Budget::kCallDepth),
               .actual = "more",
               .fix = "Look for a macro or a loop that never stops calling itself."};
}

Value Machine::make_namespace(std::shared_ptr<Dict> attributes) {
  auto object = std::make_shared<Namespace>();
  object->attributes = std::move(attributes);
  namespaces_.push_back(object);
  return Value::name_space(std::move(object));
}

Result<Value> Machine::call(const Value& callee, const Arguments& arguments) {
  if (callee.is(Kind::kUndefined)) return undefined_error(callee);
  if (!callee.is(Kind::kNative))
    return type_error("this value cannot be called", "a function or macro", callee);
  const Level level(*this);
  RETURN_IF_ERROR(level.check());
  const std::shared_ptr<Native> keep_alive = callee.native_pointer();
  return keep_alive->call(*this, arguments);
}

Result<std::optional<Value>> Machine::own_attribute(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kUndefined:
      return undefined_error(object);
    case Kind::kNative:
      return object.native().attribute(*this, name);
    case Kind::kNamespace: {
      const Value* found = object.name_space().attributes->find_name(name);
      return found == nullptr ? std::optional<Value>() : std::optional<Value>(*found);
    }
    case Kind::kTuple:
      if (object.sequence().group && name == "grouper")
        return std::optional<Value>(object.items()[0]);
      if (object.sequence().group && name == "list") return std::optional<Value>(object.items()[1]);
      break;
    case Kind::kRange: {
      const Range& range = object.range();
      if (name == "start") return std::optional<Value>(Value::integer(range.start));
      if (name == "stop") return std::optional<Value>(Value::integer(range.stop));
      if (name == "step") return std::optional<Value>(Value::integer(range.step));
      break;
    }
    default:
      break;
  }
  if (is_forbidden_method(object, name)) {
    return std::optional<Value>(Value::undefined(
        fmt::format("access to attribute '{}' of {} is unsafe", name, object_name(object))));
  }
  return bound_method(object, name);
}

Result<std::optional<Value>> Machine::own_item(const Value& object, const Value& key) {
  const auto element = [&](size_t length, auto get) -> std::optional<Value> {
    const size_t index = key.is_integral() ? resolve_index(key.integer(), length) : kNone;
    return index == kNone ? std::optional<Value>() : std::optional<Value>(get(index));
  };
  switch (object.kind()) {
    case Kind::kUndefined:
      return undefined_error(object);
    case Kind::kDict: {
      const auto hash = hash_key(budget, key);
      const Value* found = hash.ok() ? object.dict().find(*hash) : nullptr;
      return found == nullptr ? std::optional<Value>() : std::optional<Value>(*found);
    }
    case Kind::kList:
    case Kind::kTuple:
      return element(object.items().size(), [&](size_t i) { return object.items()[i]; });
    case Kind::kRange:
      return element(static_cast<size_t>(object.range().length()), [&](size_t i) {
        return Value::integer(object.range().at(static_cast<int64_t>(i)));
      });
    case Kind::kString: {
      if (!key.is_integral()) return std::optional<Value>();
      RETURN_IF_ERROR(budget.spend(object.text().size()));
      return element(code_point_count(object.text().bytes()), [&](size_t i) {
        const SliceBounds one{.start = static_cast<int64_t>(i), .count = 1};
        return Value::string(slice_text(object.text(), one), object.is_markup());
      });
    }
    default:
      return std::optional<Value>();
  }
}

Result<Value> Machine::attribute(const Value& object, std::string_view name) {
  ASSIGN_OR_RETURN(std::optional<Value> found, own_attribute(object, name));
  if (found.has_value()) return std::move(*found);
  if (object.is(Kind::kDict)) {
    if (const Value* entry = object.dict().find_name(name); entry != nullptr) return *entry;
  }
  return Value::undefined(fmt::format("{} has no attribute '{}'", object_name(object), name));
}

Result<Value> Machine::item(const Value& object, const Value& key) {
  ASSIGN_OR_RETURN(std::optional<Value> found, own_item(object, key));
  if (!found.has_value() && key.is(Kind::kString)) {
    ASSIGN_OR_RETURN(found, own_attribute(object, key.text().bytes()));
  }
  if (found.has_value()) return std::move(*found);
  ASSIGN_OR_RETURN(const Text name, repr(budget, key));
  return Value::undefined(fmt::format("{} has no element {}", object_name(object), name.bytes()));
}

Result<Value> Machine::attribute_path(const Value& object, const Value& path,
                                      const Value& fallback) {
  if (path.is(Kind::kNone)) return object;
  Value current = object;
  const auto step = [&](const Value& key) -> Status {
    ASSIGN_OR_RETURN(current, item(current, key));
    if (current.is(Kind::kUndefined) && !fallback.is(Kind::kNone)) current = fallback;
    return Ok{};
  };
  if (!path.is(Kind::kString)) {
    RETURN_IF_ERROR(step(path));
    return current;
  }
  std::string_view rest = path.text().bytes();
  while (true) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    const std::string_view part = rest.substr(0, dot);
    const bool is_index =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    const std::optional<Value> index = is_index ? parse_integer(part, 10) : std::nullopt;
    RETURN_IF_ERROR(step(index.value_or(Value::literal(part))));
    if (dot == rest.size()) return current;
    rest.remove_prefix(dot + 1);
  }
}

Result<Values> Machine::iterate(const Value& iterable) {
  RETURN_IF_ERROR(budget.spend(iterable.shallow_bytes() + Budget::kStepBytes / 4));
  Values items;
  switch (iterable.kind()) {
    case Kind::kUndefined:
      return items;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return iterable.items();
    case Kind::kString: {
      const Text& text = iterable.text();
      RETURN_IF_ERROR(budget.spend(text.size(), Budget::kStepBytes));
      for (size_t i = 0; i < text.size();) {
        const size_t end = i + decode_at(text.bytes(), i).size;
        items.push_back(Value::string(text.substr(i, end)));
        i = end;
      }
      return items;
    }
    case Kind::kDict:
      for (const auto& [key, value] : iterable.dict().entries) items.push_back(key);
      return items;
    case Kind::kRange: {
      const int64_t length = iterable.range().length();
      RETURN_IF_ERROR(budget.spend(static_cast<uint64_t>(length), sizeof(Value)));
      for (int64_t i = 0; i < length; ++i) items.push_back(Value::integer(iterable.range().at(i)));
      return items;
    }
    case Kind::kIterator: {
      Iterator& iterator = iterable.iterator();
      if (iterator.failure.has_value()) return *iterator.failure;
      items.assign(iterator.items.begin() + static_cast<int64_t>(iterator.next),
                   iterator.items.end());
      iterator.next = iterator.items.size();
      return items;
    }
    default:
      return type_error("this value has no elements", "a list, dict, string or range", iterable);
  }
}

Result<Value> Machine::filter(std::string_view name, const Value& value,
                              const Arguments& arguments) {
  const Filter* filter = find_filter(name);
  if (filter == nullptr) return unknown_filter(name);
  RETURN_IF_ERROR(budget.spend(value.shallow_bytes() + Budget::kStepBytes / 4));
  const auto apply = [&]() -> Result<Value> {
    ASSIGN_OR_RETURN(const Bound bound, Bound::bind(name, filter->parameters, arguments));
    return filter->apply(*this, value, bound);
  };
  auto result = apply();
  if (!result.ok()) return named(result.error(), "filter", name);
  if (mentions_user(value, arguments)) result->mark_from_user();
  return result;
}

Result<bool> Machine::test(std::string_view name, const Value& value, const Arguments& arguments) {
  const Test* test = find_test(name);
  if (test == nullptr) return unknown_test(name);
  RETURN_IF_ERROR(budget.spend(Budget::kStepBytes / 4));
  const auto apply = [&]() -> Result<bool> {
    ASSIGN_OR_RETURN(const Bound bound, Bound::bind(name, test->parameters, arguments));
    return test->apply(*this, value, bound);
  };
  auto result = apply();
  if (!result.ok()) return named(result.error(), "test", name);
  return result;
}

}  // namespace espalier::text::jinja
