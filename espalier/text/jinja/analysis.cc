#include "espalier/text/jinja/analysis.h"

#include <fmt/format.h>

#include <set>

#include "espalier/text/jinja/ast_walk.h"
#include "espalier/text/jinja/filters.h"

namespace espalier::text::jinja {
namespace {

using Names = std::set<std::string, std::less<>>;

// Finds the pre-declared names of one scope. Scopes within it are left out: they look outwards.
class ScopeNames {
 public:
  ScopeNames(const ScopeNames* parent, Body& body) : parent_(parent), body_(body) {}

  void parameter(const std::string& name) { mentioned_.insert(name); }
  void parameters(const Target& target) {
    if (target.kind != Target::Kind::kTuple) parameter(target.name);
    for (const Target& item : target.items) parameters(item);
  }
  void load(const ExpressionPtr& expression) {
    if (expression != nullptr) load(*expression);
  }
  void visit(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) std::visit(*this, statement.node);
  }

  void operator()(const Data&) {}
  void operator()(const LoopControl&) {}
  void operator()(const Generation&) {}
  void operator()(const Output& node) { load(node.expression); }
  void operator()(const For& node) { load(node.iterable); }
  void operator()(const Macro& node) { store(node.name); }
  void operator()(const CallBlock& node) { load(node.call); }
  void operator()(const FilterBlock& node) { load(node.filter); }
  void operator()(const BlockAssignment& node) { store(node.target); }
  void operator()(const Assignment& node) {
    load(node.value);
    store(node.target);
  }
  void operator()(const With& node) {
    for (const auto& [target, value] : node.assignments) load(value);
  }
  void operator()(const If& node) {
    load(node.branches[0].test);
    const Names before = mentioned_;
    Names after = before;
    const auto branch = [&](const ExpressionPtr& test, const std::vector<Statement>& statements) {
      mentioned_ = before;
      ++conditions_;
      load(test);
      visit(statements);
      --conditions_;
      after.merge(mentioned_);
    };
    for (const Branch& node_branch : node.branches)
      branch(node_branch.test, node_branch.statements);
    branch(nullptr, node.otherwise);
    mentioned_ = std::move(after);
  }

 private:
  bool mentioned_outside(const std::string& name) const {
    for (const ScopeNames* scope = parent_; scope != nullptr; scope = scope->parent_) {
      if (scope->mentioned_.contains(name)) return true;
    }
    return false;
  }
  void load(const Expression& expression) {
    if (const auto* name = std::get_if<Name>(&expression.node)) load(name->name);
    for_each_child(expression, [this](const Expression& child) { load(child); });
  }
  void load(const std::string& name) {
    if (!mentioned_outside(name)) mentioned_.insert(name);
  }
  void store(const Target& target) {
    if (target.kind == Target::Kind::kName) store(target.name);
    if (target.kind == Target::Kind::kAttribute) load(target.name);
    for (const Target& item : target.items) store(item);
  }
  void store(const std::string& name) {
    const bool is_first = mentioned_.insert(name).second;
    if (is_first && conditions_ == 0 && !mentioned_outside(name)) {
      body_.pre_declared.push_back(name);
    }
  }

  const ScopeNames* parent_;
  Body& body_;
  Names mentioned_;
  int conditions_ = 0;
};

bool is_constant(const Expression& expression) {
  if (std::holds_alternative<Name>(expression.node) ||
      std::holds_alternative<Call>(expression.node)) {
    return false;
  }
  bool constant = true;
  for_each_child(expression,
                 [&](const Expression& child) { constant = constant && is_constant(child); });
  return constant;
}

// Visits every statement and expression; opens a ScopeNames for each scope.
class Analyzer {
 public:
  explicit Analyzer(const std::string& source) : source_(source) {}

  Status run(Body& body) {
    ScopeNames names(nullptr, body);
    return scope(body, names, Place{});
  }

 private:
  struct Place {
    const ScopeNames* names = nullptr;
    bool in_branch =
        false;  // of an if: there, unknown filters are errors only when they are reached
    bool breakable = false;  // break and continue are allowed
    bool in_loop = false;    // `loop` may not be assigned
  };

  Status scope(Body& body, ScopeNames& names, Place place) {
    names.visit(body.statements);
    place.names = &names;
    place.in_branch = false;
    return statements(body.statements, place);
  }
  // A scope without parameters of its own.
  Status plain_scope(Body& body, const Place& place) {
    ScopeNames names(place.names, body);
    return scope(body, names, place);
  }

  Status statements(std::vector<Statement>& list, const Place& place) {
    for (Statement& statement : list) {
      RETURN_IF_ERROR(std::visit([&](auto& node) { return check(node, place, statement.offset); },
                                 statement.node));
    }
    return Ok{};
  }

  Status check(Data&, const Place&, Offset) { return Ok{}; }
  Status check(Output& node, const Place& place, Offset) {
    node.constant = is_constant(*node.expression);
    return expression(node.expression, place.in_branch);
  }
  Status check(Assignment& node, const Place& place, Offset) {
    RETURN_IF_ERROR(target(node.target, place));
    return expression(node.value, place.in_branch);
  }
  Status check(BlockAssignment& node, const Place& place, Offset) {
    RETURN_IF_ERROR(target(node.target, place));
    RETURN_IF_ERROR(expression(node.filter, false));
    return plain_scope(node.body, place);
  }
  Status check(If& node, Place place, Offset) {
    place.in_branch = true;
    for (Branch& branch : node.branches) {
      RETURN_IF_ERROR(expression(branch.test, true));
      RETURN_IF_ERROR(statements(branch.statements, place));
    }
    return statements(node.otherwise, place);
  }
  Status check(For& node, Place place, Offset) {
    RETURN_IF_ERROR(expression(node.iterable, place.in_branch));
    RETURN_IF_ERROR(expression(node.filter, false));
    place.in_loop = true;
    RETURN_IF_ERROR(target(node.target, place));
    RETURN_IF_ERROR(plain_scope(node.otherwise, place));
    place.breakable = true;
    ScopeNames names(place.names, node.body);
    names.parameters(node.target);
    names.parameter("loop");
    return scope(node.body, names, place);
  }
  Status check(Macro& node, const Place& place, Offset) { return macro(node, place); }
  Status check(CallBlock& node, const Place& place, Offset) {
    RETURN_IF_ERROR(expression(node.call, place.in_branch));
    return macro(node.caller, place);
  }
  Status check(FilterBlock& node, const Place& place, Offset) {
    RETURN_IF_ERROR(expression(node.filter, false));
    return plain_scope(node.body, place);
  }
  Status check(With& node, const Place& place, Offset) {
    ScopeNames names(place.names, node.body);
    for (const auto& [target, value] : node.assignments) {
      RETURN_IF_ERROR(expression(value, place.in_branch));
      names.parameters(target);
    }
    return scope(node.body, names, place);
  }
  Status check(Generation& node, Place place, Offset) {
    place.breakable = false;
    return plain_scope(node.body, place);
  }
  Status check(LoopControl& node, const Place& place, Offset offset) {
    if (place.breakable) return Ok{};
    return syntax_error(source_, offset, "break or continue outside of a loop",
                        "a for block around it", node.is_break ? "break" : "continue");
  }

  Status macro(Macro& node, Place place) {
    place.breakable = false;
    ScopeNames names(place.names, node.body);
    for (const Parameter& parameter : node.parameters) {
      names.parameter(parameter.name);
      names.load(parameter.fallback);
      RETURN_IF_ERROR(expression(parameter.fallback, false));
    }
    if (node.uses_caller) names.parameter("caller");
    if (node.uses_varargs) names.parameter("varargs");
    if (node.uses_kwargs) names.parameter("kwargs");
    return scope(node.body, names, place);
  }

  Status target(const Target& node, const Place& place) {
    if (place.in_loop && node.kind == Target::Kind::kName && node.name == "loop") {
      return syntax_error(source_, node.offset, "'loop' cannot be assigned inside of a loop",
                          "another name", "loop");
    }
    for (const Target& item : node.items) RETURN_IF_ERROR(target(item, place));
    return Ok{};
  }

  Status expression(const ExpressionPtr& node, bool in_branch) {
    return node == nullptr ? Status(Ok{}) : expression(*node, in_branch);
  }
  Status expression(const Expression& node, bool in_branch) {
    if (!in_branch) RETURN_IF_ERROR(known(node));
    const bool inside_branch = in_branch || std::holds_alternative<Conditional>(node.node);
    Status status = Ok{};
    for_each_child(node, [&](const Expression& child) {
      if (status.ok()) status = expression(child, inside_branch);
    });
    return status;
  }
  Status known(const Expression& node) {
    const auto* filter = std::get_if<FilterCall>(&node.node);
    const auto* test = std::get_if<TestCall>(&node.node);
    if (filter != nullptr && !filter_exists(filter->name)) {
      return at(source_, node.offset, unknown_filter(filter->name));
    }
    if (test != nullptr && !test_exists(test->name)) {
      return at(source_, node.offset, unknown_test(test->name));
    }
    return Ok{};
  }

  const std::string& source_;
};

}  // namespace

Status analyze(TemplateTree& tree) { return Analyzer(tree.source).run(tree.body); }

}  // namespace espalier::text::jinja
