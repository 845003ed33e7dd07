// The innermost part of the expression grammar: literals, names, access, calls, and assignment
// targets.
#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/expression_parser.h"

namespace espalier::text::jinja {

int height_of(const ExpressionPtr& expression) {
  return expression == nullptr ? 0 : expression->height;
}
int height_of(const std::vector<ExpressionPtr>& items) {
  int height = 0;
  for (const auto& item : items) height = std::max(height, item->height);
  return height;
}
int height_of(const ArgumentList& list) {
  int height =
      std::max({height_of(list.positional), height_of(list.star), height_of(list.double_star)});
  for (const auto& [name, value] : list.named) height = std::max(height, value->height);
  return height;
}

Status ExpressionParser::Nesting::check() const {
  if (parser_.nesting_ <= kNestingLimit) return Ok{};
  return parser_.tokens_.fail(parser_.tokens_.offset(), "an expression is nested too deeply",
                              fmt::format("at most {} levels", kNestingLimit), "more");
}

Error ExpressionParser::too_high(Offset offset) const {
  return tokens_.fail(offset, "an expression is too long",
                      fmt::format("at most {} operations within each other", kHeightLimit), "more");
}

Result<ExpressionPtr> ExpressionParser::primary() {
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kString:
      return strings();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return number();
    default:
      break;
  }
  if (tokens_.at_operator("(")) return parenthesized();
  if (tokens_.at_operator("[")) return list();
  if (tokens_.at_operator("{")) return dict();
  return tokens_.unexpected("an expression");
}

Result<ExpressionPtr> ExpressionParser::name_or_constant() {
  const Offset offset = tokens_.offset();
  std::string name = tokens_.take().text;
  if (name == "true" || name == "True") return make(offset, Constant{Value::boolean(true)}, 0);
  if (name == "false" || name == "False") return make(offset, Constant{Value::boolean(false)}, 0);
  if (name == "none" || name == "None") return make(offset, Constant{Value()}, 0);
  for (Macro* macro : open_macros) {
    macro->uses_caller |= name == "caller";
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
  }
  return make(offset, Name{std::move(name)}, 0);
}

Result<ExpressionPtr> ExpressionParser::number() {
  const Token& token = tokens_.take();
  if (token.kind == TokenKind::kFloat) {
    return make(token.offset, Constant{Value::real(token.real)}, 0);
  }
  return make(token.offset, Constant{Value::integer(token.integer)}, 0);
}

Result<ExpressionPtr> ExpressionParser::strings() {
  const Offset offset = tokens_.offset();
  std::string text;
  while (tokens_.at(TokenKind::kString)) text += tokens_.take().text;
  return make(offset, Constant{Value::literal(text)}, 0);
}

Result<ExpressionPtr> ExpressionParser::parenthesized() {
  const Offset offset = tokens_.offset();
  tokens_.take();
  if (tokens_.take_operator(")")) return make(offset, TupleLiteral{}, 0);
  ASSIGN_OR_RETURN(ExpressionPtr inner, tuple_or_expression());
  RETURN_IF_ERROR(tokens_.expect_operator(")"));
  return inner;
}

Result<ExpressionPtr> ExpressionParser::list() {
  const Offset offset = tokens_.offset();
  tokens_.take();
  ListLiteral node;
  while (!tokens_.at_operator("]")) {
    if (!node.items.empty()) {
      RETURN_IF_ERROR(tokens_.expect_operator(","));
      if (tokens_.at_operator("]")) break;
    }
    ASSIGN_OR_RETURN(ExpressionPtr item, expression());
    node.items.push_back(std::move(item));
  }
  tokens_.take();
  const int height = height_of(node.items);
  return make(offset, std::move(node), height);
}

Result<ExpressionPtr> ExpressionParser::dict() {
  const Offset offset = tokens_.offset();
  tokens_.take();
  DictLiteral node;
  int height = 0;
  while (!tokens_.at_operator("}")) {
    if (!node.entries.empty()) {
      RETURN_IF_ERROR(tokens_.expect_operator(","));
      if (tokens_.at_operator("}")) break;
    }
    ASSIGN_OR_RETURN(ExpressionPtr key, expression());
    RETURN_IF_ERROR(tokens_.expect_operator(":"));
    ASSIGN_OR_RETURN(ExpressionPtr value, expression());
    height = std::max({height, key->height, value->height});
    node.entries.emplace_back(std::move(key), std::move(value));
  }
  tokens_.take();
  return make(offset, std::move(node), height);
}

Result<ExpressionPtr> ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    if (tokens_.at_operator(".")) {
      ASSIGN_OR_RETURN(node, attribute_or_index(std::move(node)));
    } else if (tokens_.at_operator("[")) {
      ASSIGN_OR_RETURN(node, item_or_slice(std::move(node)));
    } else if (tokens_.at_operator("(")) {
      ASSIGN_OR_RETURN(node, call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::attribute_or_index(ExpressionPtr node) {
  const Offset offset = tokens_.offset();
  tokens_.take();
  const int height = node->height;
  if (tokens_.at(TokenKind::kName)) {
    return make(offset, AttributeAccess{std::move(node), tokens_.take().text}, height);
  }
  if (!tokens_.at(TokenKind::kInteger)) return tokens_.unexpected("a name or a number after '.'");
  ASSIGN_OR_RETURN(ExpressionPtr key, number());
  return make(offset, ItemAccess{std::move(node), std::move(key)}, height);
}

Result<ExpressionPtr> ExpressionParser::item_or_slice(ExpressionPtr node) {
  const Offset offset = tokens_.offset();
  tokens_.take();
  ExpressionPtr parts[3];
  int colons = 0;
  while (!tokens_.at_operator("]")) {
    if (colons < 2 && tokens_.take_operator(":")) {
      ++colons;
    } else if (parts[colons] == nullptr) {
      ASSIGN_OR_RETURN(parts[colons], colons == 0 ? tuple_key() : expression());
    } else {
      return tokens_.unexpected("']'");
    }
  }
  tokens_.take();
  int height = node->height;
  for (const auto& part : parts) height = std::max(height, height_of(part));
  if (colons > 0) {
    return make(
        offset,
        SliceAccess{std::move(node), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])},
        height);
  }
  if (parts[0] == nullptr) {
    ASSIGN_OR_RETURN(parts[0], make(offset, TupleLiteral{}, 0));  // x[] is x[()]
  }
  return make(offset, ItemAccess{std::move(node), std::move(parts[0])}, height);
}

// x[a, b] is x[(a, b)].
Result<ExpressionPtr> ExpressionParser::tuple_key() {
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(ExpressionPtr first, expression());
  if (!tokens_.at_operator(",")) return first;
  TupleLiteral tuple;
  tuple.items.push_back(std::move(first));
  while (tokens_.take_operator(",")) {
    ASSIGN_OR_RETURN(ExpressionPtr item, expression());
    tuple.items.push_back(std::move(item));
  }
  const int height = height_of(tuple.items);
  return make(offset, std::move(tuple), height);
}

Result<ExpressionPtr> ExpressionParser::call(ExpressionPtr callee) {
  const Offset offset = tokens_.offset();
  Call node;
  ASSIGN_OR_RETURN(node.arguments, arguments());
  const int height = std::max(callee->height, height_of(node.arguments));
  node.callee = std::move(callee);
  return make(offset, std::move(node), height);
}

Result<ArgumentList> ExpressionParser::arguments() {
  const Offset open = tokens_.offset();
  RETURN_IF_ERROR(tokens_.expect_operator("("));
  ArgumentList list;
  bool first = true;
  while (!tokens_.at_operator(")")) {
    if (!first) {
      RETURN_IF_ERROR(tokens_.expect_operator(","));
      if (tokens_.at_operator(")")) break;
    }
    first = false;
    RETURN_IF_ERROR(argument(list, open));
  }
  tokens_.take();
  return list;
}

Status ExpressionParser::argument(ArgumentList& list, Offset open) {
  const auto ensure = [&](bool in_order) -> Status {
    if (in_order) return Ok{};
    return tokens_.fail(open, "arguments are in the wrong order",
                        "positional, then named ones, then *list, then **dict", "another order");
  };
  if (tokens_.take_operator("*")) {
    RETURN_IF_ERROR(ensure(list.star == nullptr && list.double_star == nullptr));
    ASSIGN_OR_RETURN(list.star, expression());
  } else if (tokens_.take_operator("**")) {
    RETURN_IF_ERROR(ensure(list.double_star == nullptr));
    ASSIGN_OR_RETURN(list.double_star, expression());
  } else if (tokens_.at(TokenKind::kName) && tokens_.next_is_operator("=")) {
    RETURN_IF_ERROR(ensure(list.double_star == nullptr));
    const Offset offset = tokens_.offset();
    std::string name = tokens_.take().text;
    tokens_.take();
    for (const auto& [other, value] : list.named) {
      if (other == name) return tokens_.fail(offset, "an argument is given twice", "once", name);
    }
    ASSIGN_OR_RETURN(ExpressionPtr value, expression());
    list.named.emplace_back(std::move(name), std::move(value));
  } else {
    RETURN_IF_ERROR(
        ensure(list.star == nullptr && list.double_star == nullptr && list.named.empty()));
    ASSIGN_OR_RETURN(ExpressionPtr value, expression());
    list.positional.push_back(std::move(value));
  }
  return Ok{};
}

Result<Target> ExpressionParser::target(bool with_attribute) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.check());
  Target first;
  const Offset offset = tokens_.offset();
  ASSIGN_OR_RETURN(first, single_target(with_attribute));
  if (!tokens_.at_operator(",")) return first;
  Target tuple{
      .kind = Target::Kind::kTuple, .offset = offset, .name = {}, .attribute = {}, .items = {}};
  tuple.items.push_back(std::move(first));
  while (tokens_.take_operator(",")) {
    if (at_tuple_end()) break;
    ASSIGN_OR_RETURN(Target item, single_target(with_attribute));
    tuple.items.push_back(std::move(item));
  }
  return tuple;
}

Result<Target> ExpressionParser::single_target(bool with_attribute) {
  const Offset offset = tokens_.offset();
  if (tokens_.take_operator("(")) {
    ASSIGN_OR_RETURN(Target inner, target(false));
    RETURN_IF_ERROR(tokens_.expect_operator(")"));
    return inner;
  }
  ASSIGN_OR_RETURN(std::string name, tokens_.expect_name());
  static constexpr std::string_view kConstants[] = {"true",  "True", "false",
                                                    "False", "none", "None"};
  if (std::find(std::begin(kConstants), std::end(kConstants), name) != std::end(kConstants)) {
    return tokens_.fail(offset, "a constant cannot be assigned to", "a name", name);
  }
  Target result{.kind = Target::Kind::kName,
                .offset = offset,
                .name = std::move(name),
                .attribute = {},
                .items = {}};
  if (with_attribute && tokens_.take_operator(".")) {
    result.kind = Target::Kind::kAttribute;
    ASSIGN_OR_RETURN(result.attribute, tokens_.expect_name());
  }
  return result;
}

}  // namespace espalier::text::jinja
