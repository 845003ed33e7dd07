// Filters that read or give numbers (declared in filter_functions.h).
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "espalier/text/jinja/filter_functions.h"
#include "espalier/text/jinja/operators.h"
#include "espalier/text/jinja/represent.h"

namespace espalier::text::jinja::filters {
namespace {

Error too_large(const Value& value) {
  return type_error("the number does not fit", "an integer of 64 bits", value);
}

// What int(value) gives before the fallback: nothing where Python raises TypeError or ValueError.
Result<std::optional<Value>> integer_of(const Value& value, int64_t base) {
  if (value.is_integral()) return std::optional<Value>(Value::integer(value.integer()));
  if (value.is(Kind::kFloat)) {
    if (std::isnan(value.number())) return std::optional<Value>();
    const auto whole = truncate_to_integer(value.number());
    if (!whole.has_value()) return too_large(value);
    return std::optional<Value>(Value::integer(*whole));
  }
  if (!value.is(Kind::kString)) return std::optional<Value>();
  if (base != 0 && (base < 2 || base > 36)) return std::optional<Value>();
  return parse_integer(value.text().bytes(), static_cast<int>(base));
}

// Correctly rounded, halves to even, as Python's round().
Value round_float(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 320) return Value::real(value);
  if (digits < -310) return Value::real(std::copysign(0.0, value));
  if (digits >= 0) {
    return Value::real(std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr));
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return Value::real(std::nearbyint(value / unit) * unit);
}

Result<Value> round_integer(int64_t value, int64_t digits) {
  if (digits >= 0) return Value::integer(value);
  if (digits < -18) return Value::integer(0);
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  int64_t remainder = value % unit;
  int64_t floor = value - remainder;
  if (remainder < 0) {
    remainder += unit;
    floor -= unit;
  }
  const bool up = remainder > unit / 2 || (remainder == unit / 2 && (floor / unit) % 2 != 0);
  return Value::integer(up ? floor + unit : floor);
}

}  // namespace

Result<Value> absolute(Machine&, const Value& value, const Bound&) {
  if (!value.is_number()) return type_error("abs wants a number", "a number", value);
  if (value.is(Kind::kFloat)) return Value::real(std::fabs(value.number()));
  return value.integer() < 0 ? apply_unary(UnaryOperator::kNegate, value)
                             : Value::integer(value.integer());
}

Result<Value> to_int(Machine&, const Value& value, const Bound& arguments) {
  if (value.is(Kind::kUndefined)) return undefined_error(value);
  // A base that is no number makes int() fail on strings: then they are read as floats, or give the
  // default.
  const Value ten = Value::integer(10);
  const Value& base_value = arguments.value(1, ten);
  const int64_t base = base_value.is_integral() ? base_value.integer() : 1;
  ASSIGN_OR_RETURN(const std::optional<Value> integer, integer_of(value, base));
  if (integer.has_value()) return *integer;
  if (value.is(Kind::kString)) {  // "42.23" is 42
    const auto real = parse_float(value.text().bytes());
    const auto whole = real.has_value() ? truncate_to_integer(*real) : std::nullopt;
    if (whole.has_value()) return Value::integer(*whole);
    if (real.has_value() && std::isfinite(*real)) return too_large(value);
  }
  return arguments.value(0, Value::integer(0));
}

Result<Value> to_float(Machine&, const Value& value, const Bound& arguments) {
  if (value.is(Kind::kUndefined)) return undefined_error(value);
  if (value.is_number()) return Value::real(value.number());
  const auto real = value.is(Kind::kString) ? parse_float(value.text().bytes()) : std::nullopt;
  if (real.has_value()) return Value::real(*real);
  return arguments.value(0, Value::real(0.0));
}

Result<Value> round(Machine& machine, const Value& value, const Bound& arguments) {
  const Value zero = Value::integer(0);
  const Value& precision = arguments.value(0, zero);
  if (precision.is(Kind::kNone) && value.is(Kind::kFloat)) {  // round(x, None) is an int
    const auto whole = truncate_to_integer(std::nearbyint(value.number()));
    return whole.has_value() ? Result<Value>(Value::integer(*whole)) : too_large(value);
  }
  const std::string method =
      arguments.value(1).is(Kind::kString) ? arguments.value(1).text().bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    return type_error("the method of round", "common, ceil or floor", arguments.value(1));
  }
  if (!value.is_number()) return type_error("round wants a number", "a number", value);
  if (precision.is(Kind::kNone) && method == "common") return Value::integer(value.integer());
  if (!precision.is_integral()) return type_error("the precision of round", "int", precision);
  if (method == "common") {
    if (value.is(Kind::kFloat)) return round_float(value.number(), precision.integer());
    return round_integer(value.integer(), precision.integer());
  }
  ASSIGN_OR_RETURN(const Value unit,
                   apply_binary(machine, BinaryOperator::kPower, Value::integer(10), precision));
  ASSIGN_OR_RETURN(const Value scaled,
                   apply_binary(machine, BinaryOperator::kMultiply, value, unit));
  Value whole = scaled;
  if (scaled.is(Kind::kFloat)) {
    const double rounded =
        method == "ceil" ? std::ceil(scaled.number()) : std::floor(scaled.number());
    const auto integer = truncate_to_integer(rounded);
    if (!integer.has_value()) return too_large(scaled);
    whole = Value::integer(*integer);
  }
  return apply_binary(machine, BinaryOperator::kDivide, whole, unit);
}

Result<Value> sum(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  Value total = arguments.value(1, Value::integer(0));
  if (total.is(Kind::kString)) return type_error("sum does not add strings", "numbers", total);
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value part, machine.attribute_path(item, arguments.value(0)));
    RETURN_IF_ERROR(machine.budget.spend(Budget::kStepBytes / 4));
    ASSIGN_OR_RETURN(total, apply_binary(machine, BinaryOperator::kAdd, total, part));
  }
  return total;
}

Result<Value> filesizeformat(Machine&, const Value& value, const Bound& arguments) {
  const bool binary = arguments.truth_or(0, false);
  std::optional<double> bytes;
  if (value.is_number()) bytes = value.number();
  if (value.is(Kind::kString)) bytes = parse_float(value.text().bytes());
  if (!bytes.has_value()) return type_error("filesizeformat wants a number", "a number", value);
  const double base = binary ? 1024 : 1000;
  std::string text;
  if (*bytes == 1) {
    text = "1 Byte";
  } else if (*bytes < base) {
    const auto whole = truncate_to_integer(*bytes);
    if (!whole.has_value()) return too_large(value);
    text = fmt::format("{} Bytes", *whole);
  } else {
    static constexpr std::string_view kPrefixes = "kMGTPEZY";
    double unit = base;
    for (const char prefix : kPrefixes) {
      unit *= base;
      text = fmt::format("{:.1f} {}{}", base * *bytes / unit,
                         binary && prefix == 'k' ? 'K' : prefix, binary ? "iB" : "B");
      if (*bytes < unit) break;
    }
  }
  return Value::string(Text(text, value.from_user()));
}

}  // namespace espalier::text::jinja::filters
