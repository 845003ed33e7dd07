#include "espalier/text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/analysis.h"
#include "espalier/text/jinja/expression_parser.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

constexpr int kStatementNestingLimit = 60;
constexpr size_t kSourceBytesLimit = 16u << 20;

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens), expressions_(tokens) {}

  Result<std::vector<Statement>> run() {
    std::vector<Statement> statements;
    while (!tokens_.at(TokenKind::kEnd)) RETURN_IF_ERROR(statement(statements, {}));
    return statements;
  }

 private:
  using EndTags = std::initializer_list<std::string_view>;

  bool at_end_tag(EndTags ends) const {
    return tokens_.at(TokenKind::kBlockBegin) && tokens_.next().kind == TokenKind::kName &&
           std::find(ends.begin(), ends.end(), tokens_.next().text) != ends.end();
  }

  // The statements up to one of the end tags, whose name is current afterwards.
  Result<std::vector<Statement>> statements_until(EndTags ends) {
    tokens_.take_operator(":");
    RETURN_IF_ERROR(tokens_.expect(TokenKind::kBlockEnd));
    if (++nesting_ > kStatementNestingLimit) {
      return tokens_.fail(tokens_.offset(), "blocks are nested too deeply",
                          fmt::format("at most {} levels", kStatementNestingLimit), "more");
    }
    std::vector<Statement> statements;
    while (!at_end_tag(ends)) {
      if (tokens_.at(TokenKind::kEnd)) return missing_end(ends);
      RETURN_IF_ERROR(statement(statements, ends));
    }
    --nesting_;
    tokens_.take();
    return statements;
  }
  Result<Body> body_until(EndTags ends) {
    Body body;
    ASSIGN_OR_RETURN(body.statements, statements_until(ends));
    return body;
  }
  // The same where only one end tag is possible; it is consumed.
  Result<Body> body_to(std::string_view end) {
    ASSIGN_OR_RETURN(Body body, body_until({end}));
    tokens_.take();
    return body;
  }
  Error missing_end(EndTags ends) const {
    return tokens_.fail(tokens_.offset(), "a block is not closed",
                        fmt::format("{{% {} %}}", fmt::join(ends, " %} or {% ")),
                        "end of template");
  }

  Status statement(std::vector<Statement>& out, EndTags ends) {
    const Offset offset = tokens_.offset();
    if (tokens_.at(TokenKind::kData)) {
      out.push_back({offset, Data{Value::literal(tokens_.take().text)}});
      return Ok{};
    }
    if (tokens_.at(TokenKind::kVariableBegin)) {
      tokens_.take();
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.tuple_or_expression());
      out.push_back({offset, Output{std::move(value)}});
      return tokens_.expect(TokenKind::kVariableEnd);
    }
    RETURN_IF_ERROR(tokens_.expect(TokenKind::kBlockBegin));
    RETURN_IF_ERROR(tag(out, offset, ends));
    return tokens_.expect(TokenKind::kBlockEnd);
  }

  Status tag(std::vector<Statement>& out, Offset offset, EndTags ends) {
    using Parse = Status (Parser::*)(std::vector<Statement>&, Offset);
    static constexpr std::pair<std::string_view, Parse> kTags[] = {
        {"if", &Parser::parse_if},
        {"for", &Parser::parse_for},
        {"set", &Parser::parse_set},
        {"macro", &Parser::parse_macro},
        {"call", &Parser::parse_call},
        {"filter", &Parser::parse_filter},
        {"with", &Parser::parse_with},
        {"generation", &Parser::parse_generation},
        {"print", &Parser::parse_print},
        {"break", &Parser::parse_break},
        {"continue", &Parser::parse_continue},
    };
    const Offset name_offset = tokens_.offset();
    ASSIGN_OR_RETURN(const std::string name, tokens_.expect_name());
    for (const auto& [tag_name, parse] : kTags) {
      if (tag_name == name) return (this->*parse)(out, offset);
    }
    return tokens_.fail(name_offset, fmt::format("unknown tag '{}'", name),
                        ends.size() == 0 ? "if, for, set, macro, call, filter, with or generation"
                                         : fmt::format("'{}' first", fmt::join(ends, "' or '")),
                        fmt::format("'{}'", name));
  }

  Status parse_if(std::vector<Statement>& out, Offset offset) {
    If node;
    do {
      Branch branch;
      ASSIGN_OR_RETURN(branch.test, expressions_.tuple_or_expression(false));
      ASSIGN_OR_RETURN(branch.statements, statements_until({"elif", "else", "endif"}));
      node.branches.push_back(std::move(branch));
    } while (tokens_.take_name("elif"));
    if (tokens_.take_name("else")) {
      ASSIGN_OR_RETURN(node.otherwise, statements_until({"endif"}));
    }
    tokens_.take();
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_for(std::vector<Statement>& out, Offset offset) {
    For node;
    ASSIGN_OR_RETURN(node.target, expressions_.target(false));
    RETURN_IF_ERROR(tokens_.expect_name("in"));
    ASSIGN_OR_RETURN(node.iterable, expressions_.tuple_or_expression(false));
    if (tokens_.take_name("if")) {
      ASSIGN_OR_RETURN(node.filter, expressions_.expression());
    }
    node.recursive = tokens_.take_name("recursive");
    ASSIGN_OR_RETURN(node.body, body_until({"endfor", "else"}));
    if (tokens_.take_name("else")) {
      ASSIGN_OR_RETURN(node.otherwise, body_until({"endfor"}));
      node.has_else = !node.otherwise.statements.empty();
    }
    tokens_.take();
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_set(std::vector<Statement>& out, Offset offset) {
    ASSIGN_OR_RETURN(Target target, expressions_.target(true));
    if (tokens_.take_operator("=")) {
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.tuple_or_expression());
      out.push_back({offset, Assignment{std::move(target), std::move(value)}});
      return Ok{};
    }
    BlockAssignment node{.target = std::move(target), .filter = nullptr, .body = {}};
    if (tokens_.take_operator("|")) {
      ASSIGN_OR_RETURN(node.filter, expressions_.filters_from_name(nullptr));
    }
    ASSIGN_OR_RETURN(node.body, body_to("endset"));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status signature(Macro& macro) {
    RETURN_IF_ERROR(tokens_.expect_operator("("));
    while (!tokens_.at_operator(")")) {
      if (!macro.parameters.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
      const Offset offset = tokens_.offset();
      Parameter parameter;
      ASSIGN_OR_RETURN(parameter.name, tokens_.expect_name());
      for (const Parameter& other : macro.parameters) {
        if (other.name == parameter.name) {
          return tokens_.fail(offset, "a parameter is named twice", "different names", other.name);
        }
      }
      if (tokens_.take_operator("=")) {
        ASSIGN_OR_RETURN(parameter.fallback, expressions_.expression());
      } else if (!macro.parameters.empty() && macro.parameters.back().fallback != nullptr) {
        return tokens_.fail(offset, "a parameter without default follows one with a default",
                            "a default", parameter.name);
      }
      macro.parameters.push_back(std::move(parameter));
    }
    tokens_.take();
    return Ok{};
  }

  Status macro_body(Macro& macro, std::string_view end, Offset offset) {
    expressions_.open_macros.push_back(&macro);
    auto body = body_to(end);
    expressions_.open_macros.pop_back();
    if (!body.ok()) return body.error();
    macro.body = std::move(body).value();
    for (const Parameter& parameter : macro.parameters) {
      if (parameter.name == "kwargs") macro.uses_kwargs = false;
      if (parameter.name == "varargs") macro.uses_varargs = false;
      if (parameter.name == "caller" && macro.uses_caller && parameter.fallback == nullptr) {
        return tokens_.fail(offset, "the parameter 'caller' has no default", "a default", "none");
      }
    }
    return Ok{};
  }

  Status parse_macro(std::vector<Statement>& out, Offset offset) {
    Macro node;
    ASSIGN_OR_RETURN(node.name, tokens_.expect_name());
    RETURN_IF_ERROR(signature(node));
    RETURN_IF_ERROR(macro_body(node, "endmacro", offset));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_call(std::vector<Statement>& out, Offset offset) {
    CallBlock node;
    if (tokens_.at_operator("(")) RETURN_IF_ERROR(signature(node.caller));
    ASSIGN_OR_RETURN(node.call, expressions_.expression());
    if (!std::holds_alternative<Call>(node.call->node)) {
      return tokens_.fail(offset, "a call block calls nothing", "{% call macro(...) %}",
                          "another expression");
    }
    RETURN_IF_ERROR(macro_body(node.caller, "endcall", offset));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_filter(std::vector<Statement>& out, Offset offset) {
    FilterBlock node;
    ASSIGN_OR_RETURN(node.filter, expressions_.filters_from_name(nullptr));
    ASSIGN_OR_RETURN(node.body, body_to("endfilter"));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_with(std::vector<Statement>& out, Offset offset) {
    With node;
    while (!tokens_.at(TokenKind::kBlockEnd)) {
      if (!node.assignments.empty()) RETURN_IF_ERROR(tokens_.expect_operator(","));
      ASSIGN_OR_RETURN(Target target, expressions_.target(false));
      RETURN_IF_ERROR(tokens_.expect_operator("="));
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.expression());
      node.assignments.emplace_back(std::move(target), std::move(value));
    }
    ASSIGN_OR_RETURN(node.body, body_to("endwith"));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_generation(std::vector<Statement>& out, Offset offset) {
    Generation node;
    ASSIGN_OR_RETURN(node.body, body_to("endgeneration"));
    out.push_back({offset, std::move(node)});
    return Ok{};
  }

  Status parse_print(std::vector<Statement>& out, Offset offset) {
    bool first = true;
    while (!tokens_.at(TokenKind::kBlockEnd)) {
      if (!first) RETURN_IF_ERROR(tokens_.expect_operator(","));
      first = false;
      ASSIGN_OR_RETURN(ExpressionPtr value, expressions_.expression());
      out.push_back({offset, Output{std::move(value)}});
    }
    return Ok{};
  }

  Status parse_break(std::vector<Statement>& out, Offset offset) {
    out.push_back({offset, LoopControl{.is_break = true}});
    return Ok{};
  }
  Status parse_continue(std::vector<Statement>& out, Offset offset) {
    out.push_back({offset, LoopControl{.is_break = false}});
    return Ok{};
  }

  TokenStream& tokens_;
  ExpressionParser expressions_;
  int nesting_ = 0;
};

}  // namespace

Result<TemplateTree> parse_template(const std::string& source) {
  if (source.size() > kSourceBytesLimit) {
    return Error{.what = "the template is too large",
                 .expected = fmt::format("at most {} bytes", kSourceBytesLimit),
                 .actual = fmt::format("{}", source.size()),
                 .fix = "Check the file."};
  }
  if (invalid_utf8_at(source)) {
    return Error{.what = "the template is not text",
                 .expected = "valid UTF-8",
                 .actual = "other bytes",
                 .fix = "Save it as UTF-8."};
  }
  TemplateTree tree;
  tree.source = normalize_source(source);
  ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(tree.source));
  TokenStream stream(tree.source, std::move(tokens));
  ASSIGN_OR_RETURN(tree.body.statements, Parser(stream).run());
  RETURN_IF_ERROR(analyze(tree));
  return tree;
}

}  // namespace espalier::text::jinja
