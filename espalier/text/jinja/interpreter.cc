// The statement half of the interpreter; evaluate.cc has the expressions.
#include "espalier/text/jinja/interpreter.h"

#include <fmt/format.h>

#include "espalier/text/jinja/loop.h"
#include "espalier/text/jinja/macro.h"
#include "espalier/text/jinja/represent.h"

namespace espalier::text::jinja {

Result<Text> Interpreter::run() { return render_body(tree_.body, enter(tree_.body, nullptr)); }

Interpreter::ScopePtr Interpreter::enter(const Body& body, const ScopePtr& parent) {
  auto scope = std::make_shared<Scope>(parent);
  for (const std::string& name : body.pre_declared) scope->declare(name);
  return scope;
}

Result<Interpreter::Flow> Interpreter::capture(const Body& body, const ScopePtr& scope,
                                               Text& captured) {
  Text* outer = std::exchange(output_, &captured);
  auto flow = run_statements(body.statements, scope);
  output_ = outer;
  return flow;
}

Result<Text> Interpreter::render_body(const Body& body, const ScopePtr& scope) {
  Text text;
  ASSIGN_OR_RETURN(const Flow flow, capture(body, scope, text));
  CHECK(flow == Flow::kNext);  // the analysis lets no break or continue leave a body
  return text;
}

Result<Interpreter::Flow> Interpreter::run_statements(const std::vector<Statement>& statements,
                                                      const ScopePtr& scope) {
  for (const Statement& statement : statements) {
    ASSIGN_OR_RETURN(const Flow flow, run_statement(statement, scope));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_statement(const Statement& statement,
                                                     const ScopePtr& scope) {
  const Machine::Level level(machine_);
  if (const Status status = level.check(); !status.ok()) {
    return at(tree_.source, statement.offset, status.error());
  }
  auto flow = std::visit([&](const auto& node) { return run(node, scope); }, statement.node);
  if (!flow.ok()) return at(tree_.source, statement.offset, flow.error());
  return flow;
}

Status Interpreter::print(const Value& value) {
  ASSIGN_OR_RETURN(const Text text, to_text(machine_.budget, value));
  RETURN_IF_ERROR(machine_.budget.check_size(output_->size() + text.size()));
  output_->append(text);
  return Ok{};
}

Status Interpreter::assign(const Target& target, const Value& value, const ScopePtr& scope) {
  if (target.kind == Target::Kind::kName) {
    scope->set(target.name, value);
    return Ok{};
  }
  if (target.kind == Target::Kind::kAttribute) {
    const std::optional<Value>* slot = scope->find(target.name);
    const Value* global = slot == nullptr ? globals_.find_name(target.name) : nullptr;
    const Value* object = slot != nullptr && slot->has_value() ? &**slot : global;
    if (object == nullptr || !object->is(Kind::kNamespace)) {
      return type_error(
          "only attributes of a namespace can be set", "namespace()",
          object == nullptr ? Value::undefined("'" + target.name + "' is undefined") : *object);
    }
    if (target.attribute.starts_with('_')) {
      return type_error("a namespace has no attributes that begin with '_'", "another name", value);
    }
    object->name_space().attributes->set_name(target.attribute, false, value);
    return Ok{};
  }
  ASSIGN_OR_RETURN(const Values items, machine_.iterate(value));
  if (items.size() != target.items.size()) {
    return Error{.what = "values do not fit the names they are assigned to",
                 .expected = fmt::format("{} values", target.items.size()),
                 .actual = fmt::format("{}", items.size()),
                 .fix = "Correct the names or the values."};
  }
  for (size_t i = 0; i < items.size(); ++i)
    RETURN_IF_ERROR(assign(target.items[i], items[i], scope));
  return Ok{};
}

Value Interpreter::make_macro(const Macro& macro, const ScopePtr& scope) {
  auto function = std::make_shared<MacroFunction>(macro, *this, scope);
  machine_.own(function);
  machine_.own(scope);
  return Value::native(std::move(function));
}

Result<Interpreter::Flow> Interpreter::run(const Data& node, const ScopePtr&) {
  RETURN_IF_ERROR(print(node.text));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const Output& node, const ScopePtr& scope) {
  in_constant_output_ = node.constant;
  const auto value = evaluate(*node.expression, scope);
  in_constant_output_ = false;
  if (!value.ok()) return value.error();
  RETURN_IF_ERROR(print(*value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const Assignment& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value value, evaluate(*node.value, scope));
  RETURN_IF_ERROR(assign(node.target, value, scope));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::capture_filtered(const Body& body,
                                                        const ExpressionPtr& filter,
                                                        const ScopePtr& scope, Value& captured) {
  Text text;
  const ScopePtr inner = enter(body, scope);
  ASSIGN_OR_RETURN(const Flow flow, capture(body, inner, text));
  captured = Value::string(std::move(text));
  if (flow != Flow::kNext || filter == nullptr) return flow;
  const Value* outer = std::exchange(block_text_, &captured);
  auto filtered = evaluate(*filter, inner);
  block_text_ = outer;
  if (!filtered.ok()) return filtered.error();
  captured = std::move(filtered).value();
  return flow;
}

Result<Interpreter::Flow> Interpreter::run(const BlockAssignment& node, const ScopePtr& scope) {
  Value value;
  ASSIGN_OR_RETURN(const Flow flow, capture_filtered(node.body, node.filter, scope, value));
  if (flow == Flow::kNext) RETURN_IF_ERROR(assign(node.target, value, scope));
  return flow;
}

Result<Interpreter::Flow> Interpreter::run(const If& node, const ScopePtr& scope) {
  for (const Branch& branch : node.branches) {
    ASSIGN_OR_RETURN(const Value test, evaluate(*branch.test, scope));
    if (is_true(test)) return run_statements(branch.statements, scope);
  }
  return run_statements(node.otherwise, scope);
}

Result<Values> Interpreter::loop_items(const For& loop, const Value& iterable,
                                       const ScopePtr& outer) {
  ASSIGN_OR_RETURN(Values items, machine_.iterate(iterable));
  if (loop.filter == nullptr) return items;
  Values kept;
  for (Value& item : items) {
    const ScopePtr scope = std::make_shared<Scope>(outer);
    RETURN_IF_ERROR(assign(loop.target, item, scope));
    ASSIGN_OR_RETURN(const Value test, evaluate(*loop.filter, scope));
    if (is_true(test)) kept.push_back(std::move(item));
  }
  return kept;
}

Result<Interpreter::Flow> Interpreter::run_loop(const For& loop, const Value& iterable,
                                                const ScopePtr& outer, int depth) {
  ASSIGN_OR_RETURN(Values items, loop_items(loop, iterable, outer));
  LoopContext::Recurse recurse;
  if (loop.recursive) {
    recurse = [this, &loop, outer](const Value& inner, int level) -> Result<Value> {
      ASSIGN_OR_RETURN(Text text, render_loop(loop, inner, outer, level));
      return Value::string(std::move(text));
    };
  }
  const auto context = std::make_shared<LoopContext>(std::move(items), depth, std::move(recurse));
  bool completed = false;  // as in jinja2: a loop whose every round was cut short counts as empty
  for (size_t i = 0; i < context->elements().size(); ++i) {
    RETURN_IF_ERROR(machine_.budget.spend(Budget::kStepBytes));
    context->advance_to(i);
    const ScopePtr scope = enter(loop.body, outer);
    RETURN_IF_ERROR(assign(loop.target, context->elements()[i], scope));
    scope->set("loop", Value::native(context));
    ASSIGN_OR_RETURN(const Flow flow, run_statements(loop.body.statements, scope));
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNext;
  }
  if (completed || !loop.has_else) return Flow::kNext;
  return run_statements(loop.otherwise.statements, enter(loop.otherwise, outer));
}

Result<Text> Interpreter::render_loop(const For& loop, const Value& iterable, const ScopePtr& outer,
                                      int depth) {
  Text text;
  Text* previous = std::exchange(output_, &text);
  auto flow = run_loop(loop, iterable, outer, depth);
  output_ = previous;
  if (!flow.ok()) return flow.error();
  return text;
}

Result<Interpreter::Flow> Interpreter::run(const For& node, const ScopePtr& scope) {
  ASSIGN_OR_RETURN(const Value iterable, evaluate(*node.iterable, scope));
  return run_loop(node, iterable, scope, 0);
}

Result<Interpreter::Flow> Interpreter::run(const Macro& node, const ScopePtr& scope) {
  scope->set(node.name, make_macro(node, scope));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const CallBlock& node, const ScopePtr& scope) {
  const Value caller = make_macro(node.caller, scope);
  ASSIGN_OR_RETURN(const Value value, call(std::get<Call>(node.call->node), scope, &caller));
  RETURN_IF_ERROR(print(value));
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const FilterBlock& node, const ScopePtr& scope) {
  Value value;
  ASSIGN_OR_RETURN(const Flow flow, capture_filtered(node.body, node.filter, scope, value));
  if (flow == Flow::kNext) RETURN_IF_ERROR(print(value));
  return flow;
}

Result<Interpreter::Flow> Interpreter::run(const With& node, const ScopePtr& scope) {
  const ScopePtr inner = enter(node.body, scope);
  for (const auto& [target, expression] : node.assignments) {
    ASSIGN_OR_RETURN(const Value value, evaluate(*expression, scope));
    RETURN_IF_ERROR(assign(target, value, inner));
  }
  return run_statements(node.body.statements, inner);
}

Result<Interpreter::Flow> Interpreter::run(const Generation& node, const ScopePtr& scope) {
  return run_statements(node.body.statements, enter(node.body, scope));
}

Result<Interpreter::Flow> Interpreter::run(const LoopControl& node, const ScopePtr&) {
  return node.is_break ? Flow::kBreak : Flow::kContinue;
}

}  // namespace espalier::text::jinja
