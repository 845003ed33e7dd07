#include "espalier/text/jinja/operators.h"

#include <fmt/format.h>

#include <cmath>

#include "espalier/text/jinja/escape.h"
#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja {
namespace {

std::string_view symbol(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      return "**";
  }
  return "?";
}

Error overflow() {
  return Error{.what = "a number is too large",
               .expected = "an integer of 64 bits",
               .actual = "a larger one",
               .fix = "Use floats."};
}
Error division_by_zero() {
  return Error{.what = "division by zero",
               .expected = "another divisor",
               .actual = "0",
               .fix = "Test the divisor first."};
}
Error unsupported(BinaryOperator op, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    if (side->is(Kind::kUndefined)) return undefined_error(*side);
  }
  return Error{.what = fmt::format("the operator '{}' cannot be applied", symbol(op)),
               .expected = "two numbers, or values that the operator knows",
               .actual = fmt::format("{} {} {}", type_name(left), symbol(op), type_name(right)),
               .fix = "Convert one of them first, or join text with '~'."};
}

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent == 0) return Value::integer(result);
    if (__builtin_mul_overflow(base, base, &base)) return overflow();
  }
}

Result<Value> integers(BinaryOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOperator::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return overflow();
      return Value::integer(result);
    case BinaryOperator::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return overflow();
      return Value::integer(result);
    case BinaryOperator::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return overflow();
      return Value::integer(result);
    case BinaryOperator::kDivide:
      if (b == 0) return division_by_zero();
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOperator::kFloorDivide:
      if (b == 0) return division_by_zero();
      if (b == -1) return a == INT64_MIN ? Result<Value>(overflow()) : Value::integer(-a);
      return Value::integer(a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0));
    case BinaryOperator::kModulo:
      if (b == 0) return division_by_zero();
      if (b == -1) return Value::integer(0);
      result = a % b;
      return Value::integer(result != 0 && (result < 0) != (b < 0) ? result + b : result);
    case BinaryOperator::kPower:
      return integer_power(a, b);
  }
  return Value();
}

// As CPython rounds it: from the exact remainder, with the sign of the quotient where it is zero.
double floor_divide(double a, double b) {
  const double quotient = (a - floor_modulo(a, b)) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

Result<Value> reals(BinaryOperator op, double a, double b) {
  switch (op) {
    case BinaryOperator::kAdd:
      return Value::real(a + b);
    case BinaryOperator::kSubtract:
      return Value::real(a - b);
    case BinaryOperator::kMultiply:
      return Value::real(a * b);
    case BinaryOperator::kDivide:
      if (b == 0) return division_by_zero();
      return Value::real(a / b);
    case BinaryOperator::kFloorDivide:
      if (b == 0) return division_by_zero();
      return Value::real(floor_divide(a, b));
    case BinaryOperator::kModulo:
      if (b == 0) return division_by_zero();
      return Value::real(floor_modulo(a, b));
    case BinaryOperator::kPower: {
      if (a == 0 && b < 0) return division_by_zero();
      const double power = std::pow(a, b);
      const bool is_complex = a < 0 && std::isfinite(b) && std::floor(b) != b;
      if (is_complex || (std::isinf(power) && std::isfinite(a) && std::isfinite(b)))
        return overflow();
      return Value::real(power);
    }
  }
  return Value();
}

Result<Value> add_texts(Budget& budget, const Value& left, const Value& right) {
  const bool markup = left.is_markup() || right.is_markup();
  Text sum = left.text();
  Text addend = right.text();
  if (markup && !left.is_markup()) sum = escape_html(sum);
  if (markup && !right.is_markup()) addend = escape_html(addend);
  RETURN_IF_ERROR(budget.spend(sum.size() + addend.size()));
  sum.append(addend);
  return Value::string(std::move(sum), markup);
}

Value make_array(Kind kind, Values items) {
  return kind == Kind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Result<Value> add_arrays(Budget& budget, const Value& left, const Value& right) {
  RETURN_IF_ERROR(budget.spend(left.shallow_bytes() + right.shallow_bytes()));
  Values items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return make_array(left.kind(), std::move(items));
}

Result<Value> repeat(Budget& budget, const Value& value, int64_t times) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  if (value.is(Kind::kString)) {
    ASSIGN_OR_RETURN(Text text, repeat_text(budget, value.text(), count));
    return Value::string(std::move(text), value.is_markup());
  }
  RETURN_IF_ERROR(budget.spend(count, value.shallow_bytes()));
  Values items;
  if (value.items().empty()) return make_array(value.kind(), std::move(items));
  for (uint64_t i = 0; i < count; ++i) {
    items.insert(items.end(), value.items().begin(), value.items().end());
  }
  return make_array(value.kind(), std::move(items));
}

}  // namespace

double floor_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Result<Value> apply_binary(Machine& machine, BinaryOperator op, const Value& left,
                           const Value& right) {
  if (op == BinaryOperator::kModulo && left.is(Kind::kString)) {
    return percent_format(machine, left, right);
  }
  if (left.is_number() && right.is_number()) {
    const bool integral = left.is_integral() && right.is_integral();
    auto result = integral ? integers(op, left.integer(), right.integer())
                           : reals(op, left.number(), right.number());
    if (result.ok() && (left.from_user() || right.from_user())) result->mark_from_user();
    return result;
  }
  if (op == BinaryOperator::kAdd && left.kind() == right.kind()) {
    if (left.is(Kind::kString)) return add_texts(machine.budget, left, right);
    if (left.is_array()) return add_arrays(machine.budget, left, right);
  }
  if (op == BinaryOperator::kMultiply) {
    const auto repeatable = [](const Value& v) { return v.is(Kind::kString) || v.is_array(); };
    if (repeatable(left) && right.is_integral()) {
      return repeat(machine.budget, left, right.integer());
    }
    if (repeatable(right) && left.is_integral()) {
      return repeat(machine.budget, right, left.integer());
    }
  }
  return unsupported(op, left, right);
}

Result<Value> apply_unary(UnaryOperator op, const Value& operand) {
  if (op == UnaryOperator::kNot) return Value::boolean(!is_true(operand), operand.from_user());
  if (!operand.is_number()) return type_error("only a number can have a sign", "a number", operand);
  const bool negate = op == UnaryOperator::kNegate;
  if (operand.is(Kind::kFloat)) {
    return Value::real(negate ? -operand.number() : operand.number(), operand.from_user());
  }
  if (negate && operand.integer() == INT64_MIN) return overflow();
  return Value::integer(negate ? -operand.integer() : operand.integer(), operand.from_user());
}

Result<bool> apply_comparison(Budget& budget, Comparison op, const Value& left,
                              const Value& right) {
  const auto negated = [](Result<bool> result) -> Result<bool> {
    if (!result.ok()) return result;
    return !*result;
  };
  const auto either = [&](const Value& a, const Value& b) -> Result<bool> {
    ASSIGN_OR_RETURN(const bool is_less, less(budget, a, b));
    if (is_less) return true;
    return equal(budget, a, b);
  };
  switch (op) {
    case Comparison::kEqual:
      return equal(budget, left, right);
    case Comparison::kNotEqual:
      return negated(equal(budget, left, right));
    case Comparison::kLess:
      return less(budget, left, right);
    case Comparison::kGreater:
      return less(budget, right, left);
    case Comparison::kLessEqual:
      return either(left, right);
    case Comparison::kGreaterEqual:
      return either(right, left);
    case Comparison::kIn:
      return contains(budget, right, left);
    case Comparison::kNotIn:
      return negated(contains(budget, right, left));
  }
  return false;
}

}  // namespace espalier::text::jinja
