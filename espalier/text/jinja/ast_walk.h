// Visits the direct parts of an expression, in the order of evaluation. For the analysis; no
// recursion here.
#pragma once

#include "espalier/text/jinja/ast.h"

namespace espalier::text::jinja {

template <typename Visit>
class ChildVisitor {
 public:
  explicit ChildVisitor(Visit& visit) : visit_(visit) {}

  void operator()(const Constant&) {}
  void operator()(const Name&) {}
  void operator()(const Unary& node) { each(node.operand); }
  void operator()(const Binary& node) { each(node.left), each(node.right); }
  void operator()(const Logic& node) { each(node.left), each(node.right); }
  void operator()(const Concatenation& node) { each(node.parts); }
  void operator()(const ComparisonChain& node) {
    each(node.first);
    for (const auto& [op, operand] : node.rest) each(operand);
  }
  void operator()(const Conditional& node) {
    each(node.test), each(node.then), each(node.otherwise);
  }
  void operator()(const ListLiteral& node) { each(node.items); }
  void operator()(const TupleLiteral& node) { each(node.items); }
  void operator()(const DictLiteral& node) {
    for (const auto& [key, value] : node.entries) each(key), each(value);
  }
  void operator()(const AttributeAccess& node) { each(node.object); }
  void operator()(const ItemAccess& node) { each(node.object), each(node.key); }
  void operator()(const SliceAccess& node) {
    each(node.object), each(node.start), each(node.stop), each(node.step);
  }
  void operator()(const Call& node) { each(node.callee), each(node.arguments); }
  void operator()(const FilterCall& node) { each(node.operand), each(node.arguments); }
  void operator()(const TestCall& node) { each(node.operand), each(node.arguments); }

 private:
  void each(const ExpressionPtr& expression) {
    if (expression != nullptr) visit_(*expression);
  }
  void each(const std::vector<ExpressionPtr>& expressions) {
    for (const auto& expression : expressions) each(expression);
  }
  void each(const ArgumentList& arguments) {
    each(arguments.positional);
    for (const auto& [name, value] : arguments.named) each(value);
    each(arguments.star), each(arguments.double_star);
  }
  Visit& visit_;
};

template <typename Visit>
void for_each_child(const Expression& expression, Visit visit) {
  std::visit(ChildVisitor<Visit>(visit), expression.node);
}

}  // namespace espalier::text::jinja
