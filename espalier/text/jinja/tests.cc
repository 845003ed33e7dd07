// The tests of jinja2 ("x is defined") in one table (declared in filters.h).
#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/filters.h"
#include "espalier/text/jinja/operators.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

using Outcome = Result<bool>;

template <Kind kind>
Outcome is_kind(Machine&, const Value& value, const Bound&) {
  return value.is(kind);
}
template <Comparison op>
Outcome compares(Machine& machine, const Value& value, const Bound& arguments) {
  return apply_comparison(machine.budget, op, value, arguments.value(0));
}
template <bool wanted>
Outcome is_bool(Machine&, const Value& value, const Bound&) {
  return value.is(Kind::kBool) && value.boolean() == wanted;
}

Outcome is_defined(Machine&, const Value& value, const Bound&) {
  return !value.is(Kind::kUndefined);
}
Outcome is_number(Machine&, const Value& value, const Bound&) { return value.is_number(); }
Outcome is_escaped(Machine&, const Value& value, const Bound&) { return value.is_markup(); }
Outcome is_filter(Machine&, const Value& value, const Bound&) {
  return value.is(Kind::kString) && filter_exists(value.text().bytes());
}
Outcome is_test(Machine&, const Value& value, const Bound&) {
  return value.is(Kind::kString) && test_exists(value.text().bytes());
}
Outcome is_callable(Machine&, const Value& value, const Bound&) {
  // jinja2's Undefined can be called, to say what is undefined.
  return value.is(Kind::kUndefined) || (value.is(Kind::kNative) && value.native().callable());
}
Outcome is_sequence(Machine&, const Value& value, const Bound&) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kRange:
      return true;
    default:
      return false;
  }
}
Outcome is_iterable(Machine&, const Value& value, const Bound&) {
  switch (value.kind()) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kNamespace:
      return false;
    case Kind::kNative:
      return value.native().length().has_value();
    default:
      return true;
  }
}

// The remainder of a division, compared: value % divisor == expected.
Outcome has_remainder(Machine& machine, const Value& value, const Value& divisor,
                      int64_t expected) {
  ASSIGN_OR_RETURN(const Value rest,
                   apply_binary(machine, BinaryOperator::kModulo, value, divisor));
  return equal(machine.budget, rest, Value::integer(expected));
}
Outcome is_odd(Machine& machine, const Value& value, const Bound&) {
  return has_remainder(machine, value, Value::integer(2), 1);
}
Outcome is_even(Machine& machine, const Value& value, const Bound&) {
  return has_remainder(machine, value, Value::integer(2), 0);
}
Outcome is_divisible(Machine& machine, const Value& value, const Bound& arguments) {
  return has_remainder(machine, value, arguments.value(0), 0);
}

template <bool (*is_wanted)(char32_t)>
Outcome is_cased_as(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(const Text text, to_text(machine.budget, value));
  return is_in_case(text.bytes(), is_wanted);
}

Outcome is_same(Machine& machine, const Value& value, const Bound& arguments) {
  const Value& other = arguments.value(0);
  if (value.kind() != other.kind()) return false;
  if (value.identity() != nullptr && !value.is(Kind::kString))
    return value.identity() == other.identity();
  return equal(machine.budget, value,
               other);  // scalars and strings: Python shares equal small ones
}

// Sorted by name.
constexpr Test kTests[] = {
    {"!=", "other", compares<Comparison::kNotEqual>},
    {"<", "other", compares<Comparison::kLess>},
    {"<=", "other", compares<Comparison::kLessEqual>},
    {"==", "other", compares<Comparison::kEqual>},
    {">", "other", compares<Comparison::kGreater>},
    {">=", "other", compares<Comparison::kGreaterEqual>},
    {"boolean", "", is_kind<Kind::kBool>},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", compares<Comparison::kEqual>},
    {"equalto", "other", compares<Comparison::kEqual>},
    {"escaped", "", is_escaped},
    {"even", "", is_even},
    {"false", "", is_bool<false>},
    {"filter", "", is_filter},
    {"float", "", is_kind<Kind::kFloat>},
    {"ge", "other", compares<Comparison::kGreaterEqual>},
    {"greaterthan", "other", compares<Comparison::kGreater>},
    {"gt", "other", compares<Comparison::kGreater>},
    {"in", "seq", compares<Comparison::kIn>},
    {"integer", "", is_kind<Kind::kInt>},
    {"iterable", "", is_iterable},
    {"le", "other", compares<Comparison::kLessEqual>},
    {"lessthan", "other", compares<Comparison::kLess>},
    {"lower", "", is_cased_as<is_lower>},
    {"lt", "other", compares<Comparison::kLess>},
    {"mapping", "", is_kind<Kind::kDict>},
    {"ne", "other", compares<Comparison::kNotEqual>},
    {"none", "", is_kind<Kind::kNone>},
    {"number", "", is_number},
    {"odd", "", is_odd},
    {"sameas", "other", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_kind<Kind::kString>},
    {"test", "", is_test},
    {"true", "", is_bool<true>},
    {"undefined", "", is_kind<Kind::kUndefined>},
    {"upper", "", is_cased_as<is_upper>},
};

}  // namespace

const Test* find_test(std::string_view name) {
  const auto found = std::lower_bound(
      std::begin(kTests), std::end(kTests), name,
      [](const Test& test, std::string_view wanted) { return test.name < wanted; });
  return found != std::end(kTests) && found->name == name ? &*found : nullptr;
}

Error unknown_test(std::string_view name) {
  std::string known;
  for (const Test& test : kTests)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", test.name);
  return Error{.what = fmt::format("no test named '{}'", name),
               .expected = std::move(known),
               .actual = std::string(name),
               .fix = "Correct its name."};
}

}  // namespace espalier::text::jinja
