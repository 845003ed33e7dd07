// Interpreter: runs a parsed template once. Statements append to the current output, expressions
// give values; an Error of any part ends the run and names line and column. One per rendering, one
// thread.
#pragma once

#include <memory>

#include "espalier/text/jinja/ast.h"
#include "espalier/text/jinja/scope.h"

namespace espalier::text::jinja {

class Interpreter {
 public:
  // `globals`: what names mean that the template does not set.
  Interpreter(const TemplateTree& tree, Machine& machine, const Dict& globals)
      : tree_(tree), machine_(machine), globals_(globals) {}

  Result<Text> run();

  // For macros and loops, which call back.
  using ScopePtr = std::shared_ptr<Scope>;
  // The text that the body makes in `scope`, which was set up by enter().
  Result<Text> render_body(const Body& body, const ScopePtr& scope);
  ScopePtr enter(const Body& body, const ScopePtr& parent);
  Result<Value> evaluate(const Expression& expression, const ScopePtr& scope);
  // The text of a loop over `items` (a recursive one calls this from inside).
  Result<Text> render_loop(const For& loop, const Value& iterable, const ScopePtr& outer,
                           int depth);
  Machine& machine() { return machine_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };

  Result<Flow> run_statements(const std::vector<Statement>& statements, const ScopePtr& scope);
  Result<Flow> run_statement(const Statement& statement, const ScopePtr& scope);
  Result<Flow> run_loop(const For& loop, const Value& iterable, const ScopePtr& outer, int depth);
  Result<Values> loop_items(const For& loop, const Value& iterable, const ScopePtr& outer);
  // Runs the body with the output going to `captured`.
  Result<Flow> capture(const Body& body, const ScopePtr& scope, Text& captured);
  // The same in a scope of its own; then the chain of filters, which may be null, is applied to the
  // text.
  Result<Flow> capture_filtered(const Body& body, const ExpressionPtr& filter,
                                const ScopePtr& scope, Value& captured);
  Status print(const Value& value);
  Status assign(const Target& target, const Value& value, const ScopePtr& scope);
  Value make_macro(const Macro& macro, const ScopePtr& scope);

  Result<Flow> run(const Data& node, const ScopePtr& scope);
  Result<Flow> run(const Output& node, const ScopePtr& scope);
  Result<Flow> run(const Assignment& node, const ScopePtr& scope);
  Result<Flow> run(const BlockAssignment& node, const ScopePtr& scope);
  Result<Flow> run(const If& node, const ScopePtr& scope);
  Result<Flow> run(const For& node, const ScopePtr& scope);
  Result<Flow> run(const Macro& node, const ScopePtr& scope);
  Result<Flow> run(const CallBlock& node, const ScopePtr& scope);
  Result<Flow> run(const FilterBlock& node, const ScopePtr& scope);
  Result<Flow> run(const With& node, const ScopePtr& scope);
  Result<Flow> run(const Generation& node, const ScopePtr& scope);
  Result<Flow> run(const LoopControl& node, const ScopePtr& scope);

  Result<Value> value_of(const Constant& node, const ScopePtr& scope);
  Result<Value> value_of(const Name& node, const ScopePtr& scope);
  Result<Value> value_of(const Unary& node, const ScopePtr& scope);
  Result<Value> value_of(const Binary& node, const ScopePtr& scope);
  Result<Value> value_of(const Logic& node, const ScopePtr& scope);
  Result<Value> value_of(const Concatenation& node, const ScopePtr& scope);
  Result<Value> value_of(const ComparisonChain& node, const ScopePtr& scope);
  Result<Value> value_of(const Conditional& node, const ScopePtr& scope);
  Result<Value> value_of(const ListLiteral& node, const ScopePtr& scope);
  Result<Value> value_of(const TupleLiteral& node, const ScopePtr& scope);
  Result<Value> value_of(const DictLiteral& node, const ScopePtr& scope);
  Result<Value> value_of(const AttributeAccess& node, const ScopePtr& scope);
  Result<Value> value_of(const ItemAccess& node, const ScopePtr& scope);
  Result<Value> value_of(const SliceAccess& node, const ScopePtr& scope);
  Result<Value> value_of(const Call& node, const ScopePtr& scope);
  Result<Value> value_of(const FilterCall& node, const ScopePtr& scope);
  Result<Value> value_of(const TestCall& node, const ScopePtr& scope);

  Result<Values> evaluate_all(const std::vector<ExpressionPtr>& list, const ScopePtr& scope);
  Result<Value> evaluate_or_none(const ExpressionPtr& expression, const ScopePtr& scope);
  Result<Value> call(const Call& node, const ScopePtr& scope, const Value* caller);
  Result<Arguments> arguments(const ArgumentList& list, const ScopePtr& scope);
  Status add_dynamic_arguments(const ArgumentList& list, const ScopePtr& scope, Arguments& out);

  const TemplateTree& tree_;
  Machine& machine_;
  const Dict& globals_;
  bool in_constant_output_ = false;
  Text* output_ = nullptr;             // where statements append
  const Value* block_text_ = nullptr;  // what a filter without operand filters
};

}  // namespace espalier::text::jinja
