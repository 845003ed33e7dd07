// Methods of strings, lists, tuples, dicts and ranges: one table per type. What would change a
// value is not there: the sandbox of jinja2 forbids it.
#pragma once

#include <span>

#include "espalier/text/jinja/binding.h"
#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

struct Method {
  std::string_view name;
  std::string_view parameters;  // see binding.h
  Result<Value> (*apply)(Machine& machine, const Value& self, const Bound& arguments);
};

std::span<const Method> string_methods();
std::span<const Method> list_methods();
std::span<const Method> dict_methods();

// The method of `self` of this name, bound to it; nothing where its type has none.
std::optional<Value> bound_method(const Value& self, std::string_view name);
// A method of Python's that changes the value in place: "append", "update".
bool is_forbidden_method(const Value& self, std::string_view name);

}  // namespace espalier::text::jinja
