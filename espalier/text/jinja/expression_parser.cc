#include "espalier/text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::text::jinja {
namespace {

struct ArithmeticLevel {
  std::vector<std::pair<std::string_view, BinaryOperator>> operators;
};
// Loosest first. "~" binds between the first and the second level.
const std::vector<ArithmeticLevel>& arithmetic_levels() {
  static const std::vector<ArithmeticLevel> levels = {
      {{{"+", BinaryOperator::kAdd}, {"-", BinaryOperator::kSubtract}}},
      {{{"*", BinaryOperator::kMultiply},
        {"/", BinaryOperator::kDivide},
        {"//", BinaryOperator::kFloorDivide},
        {"%", BinaryOperator::kModulo}}},
      {{{"**", BinaryOperator::kPower}}},
  };
  return levels;
}

constexpr std::pair<std::string_view, Comparison> kComparisons[] = {
    {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
    {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
    {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual},
};

}  // namespace

Result<ExpressionPtr> ExpressionParser::expression(bool with_conditional) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.check());
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr node, disjunction());
  while (with_conditional && tokens_.take_name("if")) {
    ASSIGN_OR_RETURN(ExpressionPtr test, disjunction());
    ExpressionPtr otherwise;
    if (tokens_.take_name("else")) {
      ASSIGN_OR_RETURN(otherwise, expression());
    }
    const int height = std::max({height_of(node), height_of(test), height_of(otherwise)});
    ASSIGN_OR_RETURN(
        node,
        make(offset, Conditional{std::move(test), std::move(node), std::move(otherwise)}, height));
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::disjunction() {
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr left, conjunction());
  while (tokens_.take_name("or")) {
    ASSIGN_OR_RETURN(ExpressionPtr right, conjunction());
    const int height = std::max(left->height, right->height);
    ASSIGN_OR_RETURN(left, make(offset, Logic{true, std::move(left), std::move(right)}, height));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::conjunction() {
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr left, negation());
  while (tokens_.take_name("and")) {
    ASSIGN_OR_RETURN(ExpressionPtr right, negation());
    const int height = std::max(left->height, right->height);
    ASSIGN_OR_RETURN(left, make(offset, Logic{false, std::move(left), std::move(right)}, height));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::negation() {
  const Offset offset = tokens_.offset();
  if (!tokens_.take_name("not")) return comparison();
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.check());
  ASSIGN_OR_RETURN(ExpressionPtr operand, negation());
  const int height = operand->height;
  return make(offset, Unary{UnaryOperator::kNot, std::move(operand)}, height);
}

Result<ExpressionPtr> ExpressionParser::comparison() {
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr first, arithmetic(0));
  ComparisonChain chain;
  int height = first->height;
  while (true) {
    const auto found =
        std::find_if(std::begin(kComparisons), std::end(kComparisons),
                     [&](const auto& entry) { return tokens_.at_operator(entry.first); });
    Comparison op = Comparison::kIn;
    if (found != std::end(kComparisons)) {
      op = found->second;
    } else if (tokens_.at_name("not") && tokens_.next_is_name("in")) {
      op = Comparison::kNotIn;
      tokens_.take();
    } else if (!tokens_.at_name("in")) {
      break;
    }
    tokens_.take();
    ASSIGN_OR_RETURN(ExpressionPtr operand, arithmetic(0));
    height = std::max(height, operand->height);
    chain.rest.emplace_back(op, std::move(operand));
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(offset, std::move(chain), height);
}

Result<ExpressionPtr> ExpressionParser::arithmetic(size_t level) {
  const auto& levels = arithmetic_levels();
  if (level == levels.size()) return unary(true);
  const auto operand = [&]() { return level == 0 ? concatenation() : arithmetic(level + 1); };
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr left, operand());
  while (true) {
    const auto& operators = levels[level].operators;
    const auto found = std::find_if(operators.begin(), operators.end(), [&](const auto& entry) {
      return tokens_.at_operator(entry.first);
    });
    if (found == operators.end()) return left;
    tokens_.take();
    ASSIGN_OR_RETURN(ExpressionPtr right, operand());
    const int height = std::max(left->height, right->height);
    ASSIGN_OR_RETURN(
        left, make(offset, Binary{found->second, std::move(left), std::move(right)}, height));
  }
}

Result<ExpressionPtr> ExpressionParser::concatenation() {
  const Offset offset = tokens_.offset();
  Concatenation node;
  do {
    ASSIGN_OR_RETURN(ExpressionPtr part, arithmetic(1));
    node.parts.push_back(std::move(part));
  } while (tokens_.take_operator("~"));
  if (node.parts.size() == 1) return std::move(node.parts[0]);
  const int height = height_of(node.parts);
  return make(offset, std::move(node), height);
}

Result<ExpressionPtr> ExpressionParser::unary(bool with_filters) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.check());
  const Offset offset = tokens_.offset();
  ExpressionPtr node;
  const bool negates = tokens_.at_operator("-");
  if (negates || tokens_.at_operator("+")) {
    tokens_.take();
    ASSIGN_OR_RETURN(ExpressionPtr operand, unary(false));
    const int height = operand->height;
    const auto op = negates ? UnaryOperator::kNegate : UnaryOperator::kPlus;
    ASSIGN_OR_RETURN(node, make(offset, Unary{op, std::move(operand)}, height));
  } else {
    ASSIGN_OR_RETURN(node, primary());
  }
  ASSIGN_OR_RETURN(node, postfix(std::move(node)));
  if (!with_filters) return node;
  return filters_and_tests(std::move(node));
}

bool ExpressionParser::at_tuple_end() const {
  return tokens_.at(TokenKind::kVariableEnd) || tokens_.at(TokenKind::kBlockEnd) ||
         tokens_.at_operator(")");
}

Result<ExpressionPtr> ExpressionParser::tuple_or_expression(bool with_conditional) {
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr first, expression(with_conditional));
  if (!tokens_.at_operator(",")) return first;
  TupleLiteral tuple;
  tuple.items.push_back(std::move(first));
  while (tokens_.take_operator(",")) {
    if (at_tuple_end()) break;
    ASSIGN_OR_RETURN(ExpressionPtr item, expression(with_conditional));
    tuple.items.push_back(std::move(item));
  }
  const int height = height_of(tuple.items);
  return make(offset, std::move(tuple), height);
}

Result<std::string> ExpressionParser::dotted_name() {
  ASSIGN_OR_RETURN(std::string name, tokens_.expect_name());
  while (tokens_.take_operator(".")) {
    ASSIGN_OR_RETURN(const std::string part, tokens_.expect_name());
    name += "." + part;
  }
  return name;
}

Result<ExpressionPtr> ExpressionParser::filters_from_name(ExpressionPtr operand) {
  do {
    const Offset offset = tokens_.offset();
    FilterCall node;
    ASSIGN_OR_RETURN(node.name, dotted_name());
    if (tokens_.at_operator("(")) {
      ASSIGN_OR_RETURN(node.arguments, arguments());
    }
    const int height = std::max(height_of(operand), height_of(node.arguments));
    node.operand = std::move(operand);
    ASSIGN_OR_RETURN(operand, make(offset, std::move(node), height));
  } while (tokens_.take_operator("|"));
  return operand;
}

Result<ExpressionPtr> ExpressionParser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (tokens_.take_operator("|")) {
      ASSIGN_OR_RETURN(node, filters_from_name(std::move(node)));
    } else if (tokens_.take_name("is")) {
      ASSIGN_OR_RETURN(node, test(std::move(node)));
    } else if (tokens_.at_operator("(")) {
      ASSIGN_OR_RETURN(node, call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ArgumentList> ExpressionParser::test_arguments() {
  if (tokens_.at_operator("(")) return arguments();
  ArgumentList list;
  const bool at_value = tokens_.at(TokenKind::kName) || tokens_.at(TokenKind::kString) ||
                        tokens_.at(TokenKind::kInteger) || tokens_.at(TokenKind::kFloat) ||
                        tokens_.at_operator("[") || tokens_.at_operator("{");
  if (!at_value || tokens_.at_name("else") || tokens_.at_name("or") || tokens_.at_name("and")) {
    return list;
  }
  if (tokens_.at_name("is")) return tokens_.unexpected("one test; 'is' cannot be chained");
  ASSIGN_OR_RETURN(ExpressionPtr value, primary());
  ASSIGN_OR_RETURN(value, postfix(std::move(value)));
  list.positional.push_back(std::move(value));
  return list;
}

Result<ExpressionPtr> ExpressionParser::test(ExpressionPtr operand) {
  const Offset offset = tokens_.offset();
  const bool negated = tokens_.take_name("not");
  TestCall node;
  ASSIGN_OR_RETURN(node.name, dotted_name());
  ASSIGN_OR_RETURN(node.arguments, test_arguments());
  const int height = std::max(operand->height, height_of(node.arguments));
  node.operand = std::move(operand);
  ASSIGN_OR_RETURN(ExpressionPtr result, make(offset, std::move(node), height));
  if (!negated) return result;
  return make(offset, Unary{UnaryOperator::kNot, std::move(result)}, height + 1);
}

}  // namespace espalier::text::jinja
