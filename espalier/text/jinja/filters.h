// The filters ("x | upper") and tests ("x is defined") of jinja2, each in one table, with
// transformers' tojson. Left out: what makes HTML (urlize, xmlattr), pprint, wordwrap, and random,
// which would make prompts differ.
#pragma once

#include <string_view>

#include "espalier/text/jinja/binding.h"
#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

struct Filter {
  std::string_view name;
  std::string_view parameters;  // after the filtered value; see binding.h
  Result<Value> (*apply)(Machine& machine, const Value& value, const Bound& arguments);
};
struct Test {
  std::string_view name;
  std::string_view parameters;
  Result<bool> (*apply)(Machine& machine, const Value& value, const Bound& arguments);
};

const Filter* find_filter(std::string_view name);  // nullptr where there is none
const Test* find_test(std::string_view name);
inline bool filter_exists(std::string_view name) { return find_filter(name) != nullptr; }
inline bool test_exists(std::string_view name) { return find_test(name) != nullptr; }
Error unknown_filter(std::string_view name);
Error unknown_test(std::string_view name);

}  // namespace espalier::text::jinja
