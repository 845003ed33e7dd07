// The expression half of the interpreter.
#include <fmt/format.h>

#include "espalier/text/jinja/interpreter.h"
#include "espalier/text/jinja/operators.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/slicing.h"

namespace espalier::text::jinja {
Result<Value> Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  const Machine::Level level(machine_);
  Status status = level.check();
  if (status.ok()) {
    auto result =
        std::visit([&](const auto& node) { return value_of(node, scope); }, expression.node);
    if (result.ok() && result->depth() <= Budget::kValueDepth) {
      status = machine_.budget.spend(result->shallow_bytes() / 8);
      if (status.ok()) return result;
    } else if (result.ok()) {
      status = Error{.what = "values are nested too deeply",
                     .expected = fmt::format("at most {} levels", Budget::kValueDepth),
                     .actual = "more",
                     .fix = "Look for a list that holds itself again and again."};
    } else {
      status = result.error();
    }
  }
  return at(tree_.source, expression.offset, status.error());
}

Result<Value> Interpreter::value_of(const Constant& node, const ScopePtr&) { return node.value; }

Result<Value> Interpreter::value_of(const Name& node, const ScopePtr& scope) {
  if (const std::optional<Value>* slot = scope->find(node.name); slot != nullptr) {
    if (slot->has_value()) return **slot;
  } else if (const Value* global = globals_.find_name(node.name); global != nullptr) {
    return *global;
  }
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Result<Value> Interpreter::value_of(const Unary& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value operand, evaluate(*node.operand, scope));
  return apply_unary(node.op, operand);
}

Result<Value> Interpreter::value_of(const Binary& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value left, evaluate(*node.left, scope));
  ASSIGN_OR_RETURN(const Value right, evaluate(*node.right, scope));
  return apply_binary(machine_, node.op, left, right);
}

Result<Value> Interpreter::value_of(const Logic& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Value left, evaluate(*node.left, scope));
  if (is_true(left) == node.is_or) return left;
  return evaluate(*node.right, scope);
}

Result<Value> Interpreter::value_of(const Concatenation& node, const ScopePtr& scope) {
  Text joined;
  for (const ExpressionPtr& part : node.parts) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*part, scope));
    ASSIGN_OR_RETURN(const Text text, to_text(machine_.budget, value));
    RETURN_IF_ERROR(machine_.budget.check_size(joined.size() + text.size()));
    joined.append(text);
  }
  return Value::string(std::move(joined));
}

Result<Value> Interpreter::value_of(const ComparisonChain& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Value left, evaluate(*node.first, scope));
  bool from_user = left.from_user();
  for (const auto& [op, operand] : node.rest) {
    ASSIGN_OR_RETURN(Value right, evaluate(*operand, scope));
    from_user |= right.from_user();
    ASSIGN_OR_RETURN(const bool holds, apply_comparison(machine_.budget, op, left, right));
    if (!holds) return Value::boolean(false, from_user);
    left = std::move(right);
  }
  return Value::boolean(true, from_user);
}

Result<Value> Interpreter::value_of(const Conditional& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value test, evaluate(*node.test, scope));
  if (is_true(test)) return evaluate(*node.then, scope);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise, scope);
  return Value::undefined("the inline if evaluated to false and has no else");
}

Result<Values> Interpreter::evaluate_all(const std::vector<ExpressionPtr>& list,
                                         const ScopePtr& scope) {
  Values values;
  values.reserve(list.size());
  for (const ExpressionPtr& expression : list) {
    ASSIGN_OR_RETURN(Value value, evaluate(*expression, scope));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Value> Interpreter::value_of(const ListLiteral& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Values items, evaluate_all(node.items, scope));
  return Value::list(std::move(items));
}

Result<Value> Interpreter::value_of(const TupleLiteral& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(Values items, evaluate_all(node.items, scope));
  return Value::tuple(std::move(items));
}

Result<Value> Interpreter::value_of(const DictLiteral& node, const ScopePtr& scope) {
  auto dict = std::make_shared<Dict>();
  for (const auto& [key_expression, value_expression] : node.entries) {
    ASSIGN_OR_RETURN(Value key, evaluate(*key_expression, scope));
    ASSIGN_OR_RETURN(Value value, evaluate(*value_expression, scope));
    ASSIGN_OR_RETURN(std::string hash, hash_key(machine_.budget, key));
    dict->set(std::move(hash), std::move(key), std::move(value));
  }
  return Value::dict(std::move(dict));
}

Result<Value> Interpreter::value_of(const AttributeAccess& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value object, evaluate(*node.object, scope));
  return machine_.attribute(object, node.name);
}

Result<Value> Interpreter::value_of(const ItemAccess& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value object, evaluate(*node.object, scope));
  ASSIGN_OR_RETURN(const Value key, evaluate(*node.key, scope));
  return machine_.item(object, key);
}

Result<Value> Interpreter::evaluate_or_none(const ExpressionPtr& expression,
                                            const ScopePtr& scope) {
  return expression == nullptr ? Result<Value>(Value()) : evaluate(*expression, scope);
}

Result<Value> Interpreter::value_of(const SliceAccess& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value object, evaluate(*node.object, scope));
  ASSIGN_OR_RETURN(const Value start, evaluate_or_none(node.start, scope));
  ASSIGN_OR_RETURN(const Value stop, evaluate_or_none(node.stop, scope));
  ASSIGN_OR_RETURN(const Value step, evaluate_or_none(node.step, scope));
  auto part = slice(machine_.budget, object, start, stop, step);
  if (!part.ok() && in_constant_output_) return Value::undefined(part.error().what);
  return part;
}

Result<Arguments> Interpreter::arguments(const ArgumentList& list, const ScopePtr& scope) {
  Arguments out;
  ASSIGN_OR_RETURN(out.positional, evaluate_all(list.positional, scope));
  for (const auto& [name, expression] : list.named) {
    ASSIGN_OR_RETURN(Value value, evaluate(*expression, scope));
    out.named.emplace_back(name, std::move(value));
  }
  RETURN_IF_ERROR(add_dynamic_arguments(list, scope, out));
  return out;
}

// "*list" and "**dict".
Status Interpreter::add_dynamic_arguments(const ArgumentList& list, const ScopePtr& scope,
                                          Arguments& out) {
  if (list.star != nullptr) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*list.star, scope));
    ASSIGN_OR_RETURN(const Values items, machine_.iterate(value));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  if (list.double_star == nullptr) return Ok{};
  ASSIGN_OR_RETURN(const Value value, evaluate(*list.double_star, scope));
  if (!value.is(Kind::kDict)) return type_error("the argument after '**'", "dict", value);
  for (const auto& [key, content] : value.dict().entries) {
    if (!key.is(Kind::kString)) return type_error("a key of the argument after '**'", "str", key);
    for (const auto& [name, other] : out.named) {
      if (name == key.text().bytes()) return type_error("an argument is given twice", "once", key);
    }
    out.named.emplace_back(key.text().bytes(), content);
  }
  return Ok{};
}

Result<Value> Interpreter::call(const Call& node, const ScopePtr& scope, const Value* caller) {
  ASSIGN_OR_RETURN(const Value callee, evaluate(*node.callee, scope));
  ASSIGN_OR_RETURN(Arguments list, arguments(node.arguments, scope));
  if (caller != nullptr) list.named.emplace_back("caller", *caller);
  return machine_.call(callee, list);
}

Result<Value> Interpreter::value_of(const Call& node, const ScopePtr& scope) {
  return call(node, scope, nullptr);
}

Result<Value> Interpreter::value_of(const FilterCall& node, const ScopePtr& scope) {
  Value operand;
  if (node.operand != nullptr) {
    ASSIGN_OR_RETURN(operand, evaluate(*node.operand, scope));
  } else {
    CHECK(block_text_ != nullptr);
    operand = *block_text_;
  }
  ASSIGN_OR_RETURN(const Arguments list, arguments(node.arguments, scope));
  return machine_.filter(node.name, operand, list);
}

Result<Value> Interpreter::value_of(const TestCall& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value operand, evaluate(*node.operand, scope));
  ASSIGN_OR_RETURN(const Arguments list, arguments(node.arguments, scope));
  ASSIGN_OR_RETURN(const bool result, machine_.test(node.name, operand, list));
  return Value::boolean(result, operand.from_user());
}

}  // namespace espalier::text::jinja
