// The tree of a parsed template: plain data, built by the parser, completed by the analysis, read
// by the interpreter. Immutable after that; shared by all renderings.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "espalier/text/jinja/source.h"
#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct ArgumentList {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, double_star;  // may be null
};

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
enum class UnaryOperator : uint8_t { kNot, kNegate, kPlus };
struct Unary {
  UnaryOperator op;
  ExpressionPtr operand;
};
enum class BinaryOperator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
};
struct Binary {
  BinaryOperator op;
  ExpressionPtr left, right;
};
struct Logic {
  bool is_or;
  ExpressionPtr left, right;
};
struct Concatenation {
  std::vector<ExpressionPtr> parts;
};
enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};
struct ComparisonChain {
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};
struct Conditional {
  ExpressionPtr test, then, otherwise;
};  // `otherwise` may be null
struct ListLiteral {
  std::vector<ExpressionPtr> items;
};
struct TupleLiteral {
  std::vector<ExpressionPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct AttributeAccess {
  ExpressionPtr object;
  std::string name;
};
struct ItemAccess {
  ExpressionPtr object, key;
};
struct SliceAccess {
  ExpressionPtr object, start, stop, step;
};  // the last three may be null
struct Call {
  ExpressionPtr callee;
  ArgumentList arguments;
};
struct FilterCall {
  ExpressionPtr operand;
  std::string name;
  ArgumentList arguments;
};  // null: a block's text
struct TestCall {
  ExpressionPtr operand;
  std::string name;
  ArgumentList arguments;
};

struct Expression {
  Offset offset = 0;
  int height = 1;  // of the tree below; the parser keeps it small, so recursion over it is safe
  std::variant<Constant, Name, Unary, Binary, Logic, Concatenation, ComparisonChain, Conditional,
               ListLiteral, TupleLiteral, DictLiteral, AttributeAccess, ItemAccess, SliceAccess,
               Call, FilterCall, TestCall>
      node;
};

// What stands left of "=" or between "for" and "in".
struct Target {
  enum class Kind : uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  Offset offset = 0;
  std::string name;
  std::string attribute;      // kAttribute: of the namespace `name`
  std::vector<Target> items;  // kTuple
};

struct Statement;

// The statements of one scope. `pre_declared`: names that begin as undefined here instead of being
// looked up outside, because their first mention is an assignment (filled by the analysis).
struct Body {
  std::vector<Statement> statements;
  std::vector<std::string> pre_declared;
};

struct Data {
  Value text;
};
// `constant`: without names and calls (filled by the analysis). jinja2 computes such output
// beforehand, where a slice that cannot be taken is undefined instead of an error.
struct Output {
  ExpressionPtr expression;
  bool constant = false;
};
struct Assignment {
  Target target;
  ExpressionPtr value;
};
struct BlockAssignment {
  Target target;
  ExpressionPtr filter;
  Body body;
};  // `filter` may be null
struct Branch {
  ExpressionPtr test;
  std::vector<Statement> statements;
};
struct If {
  std::vector<Branch> branches;
  std::vector<Statement> otherwise;
};
struct For {
  Target target;
  ExpressionPtr iterable, filter;  // `filter` may be null
  bool recursive = false;
  bool has_else = false;
  Body body, otherwise;
};
struct Parameter {
  std::string name;
  ExpressionPtr fallback;
};  // `fallback` may be null
struct Macro {
  std::string name;  // empty for the body of a call block
  std::vector<Parameter> parameters;
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct CallBlock {
  Macro caller;
  ExpressionPtr call;
};
struct FilterBlock {
  ExpressionPtr filter;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  Body body;
};
struct Generation {
  Body body;
};
struct LoopControl {
  bool is_break;
};

struct Statement {
  Offset offset = 0;
  std::variant<Data, Output, Assignment, BlockAssignment, If, For, Macro, CallBlock, FilterBlock,
               With, Generation, LoopControl>
      node;
};

struct TemplateTree {
  std::string source;  // normalised; offsets point into it
  Body body;
};

}  // namespace espalier::text::jinja
