// ExpressionParser: the expression grammar of Jinja, by recursive descent, loosest operator first.
// Part of the parser; used by one thread.
#pragma once

#include <string>
#include <vector>

#include "espalier/text/jinja/ast.h"
#include "espalier/text/jinja/token_stream.h"

namespace espalier::text::jinja {

// Height of what may be absent; the tallest of several.
int height_of(const ExpressionPtr& expression);
int height_of(const std::vector<ExpressionPtr>& items);
int height_of(const ArgumentList& list);

class ExpressionParser {
 public:
  static constexpr int kNestingLimit =
      100;  // brackets, unary operators, conditionals within each other
  static constexpr int kHeightLimit = 200;  // of the tree: also the length of "a + a + a + ..."

  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExpressionPtr> expression(bool with_conditional = true);
  // An expression, or a tuple of them without parentheses.
  Result<ExpressionPtr> tuple_or_expression(bool with_conditional = true);
  // "name(args) | name ..." applied to `operand`, which may be null; `tokens` stand at the first
  // name.
  Result<ExpressionPtr> filters_from_name(ExpressionPtr operand);
  Result<Target> target(bool with_attribute);

  // Macros whose body is being read: they learn which of caller, varargs and kwargs it mentions.
  std::vector<Macro*> open_macros;

 private:
  // Counts one level of recursion for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Nesting() { --parser_.nesting_; }
    Status check() const;

   private:
    ExpressionParser& parser_;
  };

  Result<ExpressionPtr> disjunction();
  Result<ExpressionPtr> conjunction();
  Result<ExpressionPtr> negation();
  Result<ExpressionPtr> comparison();
  Result<ExpressionPtr> arithmetic(size_t level);
  Result<ExpressionPtr> concatenation();
  Result<ExpressionPtr> unary(bool with_filters);
  Result<ExpressionPtr> primary();
  Result<ExpressionPtr> name_or_constant();
  Result<ExpressionPtr> number();
  Result<ExpressionPtr> strings();
  Result<ExpressionPtr> parenthesized();
  Result<ExpressionPtr> list();
  Result<ExpressionPtr> dict();
  Result<ExpressionPtr> postfix(ExpressionPtr node);
  Result<ExpressionPtr> filters_and_tests(ExpressionPtr node);
  Result<ExpressionPtr> attribute_or_index(ExpressionPtr node);
  Result<ExpressionPtr> item_or_slice(ExpressionPtr node);
  Result<ExpressionPtr> tuple_key();
  Result<ExpressionPtr> call(ExpressionPtr callee);
  Result<ExpressionPtr> test(ExpressionPtr operand);
  Result<ArgumentList> test_arguments();
  Result<std::string> dotted_name();
  Result<ArgumentList> arguments();
  Status argument(ArgumentList& list, Offset open);
  Result<Target> single_target(bool with_attribute);
  bool at_tuple_end() const;

  template <typename Node>
  Result<ExpressionPtr> make(Offset offset, Node node, int children_height) {
    if (children_height >= kHeightLimit) return too_high(offset);
    auto expression = std::make_unique<Expression>();
    expression->offset = offset;
    expression->height = children_height + 1;
    expression->node = std::move(node);
    return expression;
  }
  Error too_high(Offset offset) const;

  TokenStream& tokens_;
  int nesting_ = 0;
};

}  // namespace espalier::text::jinja
