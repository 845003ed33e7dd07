// The operators of the expression language on values, with Python's rules. Integers are 64 bits
// wide; what would not fit is an error. Results are marked as user text when an operand was.
#pragma once

#include "espalier/text/jinja/ast.h"
#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

Result<Value> apply_binary(Machine& machine, BinaryOperator op, const Value& left,
                           const Value& right);
Result<Value> apply_unary(UnaryOperator op, const Value& operand);
Result<bool> apply_comparison(Budget& budget, Comparison op, const Value& left, const Value& right);

// Floor division and the modulo that goes with it, as Python rounds them.
double floor_modulo(double a, double b);

}  // namespace espalier::text::jinja
