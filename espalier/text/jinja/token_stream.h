// TokenStream: the parser's view of the tokens, with look-ahead and errors that name the place.
// Refers to the source; used by one parser.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/text/jinja/lexer.h"

namespace espalier::text::jinja {

class TokenStream {
 public:
  TokenStream(std::string_view source, std::vector<Token> tokens)
      : source_(source), tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[index_]; }
  const Token& next() const { return tokens_[std::min(index_ + 1, tokens_.size() - 1)]; }
  Offset offset() const { return current().offset; }
  // The current token, and one step on. The end is never passed.
  const Token& take() { return tokens_[index_ + 1 < tokens_.size() ? index_++ : index_]; }

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return is(current(), TokenKind::kName, name); }
  bool at_operator(std::string_view text) const {
    return is(current(), TokenKind::kOperator, text);
  }
  bool next_is_name(std::string_view name) const { return is(next(), TokenKind::kName, name); }
  bool next_is_operator(std::string_view text) const {
    return is(next(), TokenKind::kOperator, text);
  }
  bool take_name(std::string_view name) { return at_name(name) && (take(), true); }
  bool take_operator(std::string_view text) { return at_operator(text) && (take(), true); }

  Result<std::string> expect_name() {
    if (!at(TokenKind::kName)) return unexpected("a name");
    return take().text;
  }
  Status expect_name(std::string_view name) {
    if (!take_name(name)) return unexpected(fmt::format("'{}'", name));
    return Ok{};
  }
  Status expect_operator(std::string_view text) {
    if (!take_operator(text)) return unexpected(fmt::format("'{}'", text));
    return Ok{};
  }
  Status expect(TokenKind kind) {
    if (!at(kind)) return unexpected(describe(Token{.kind = kind}));
    take();
    return Ok{};
  }

  Error fail(Offset offset, std::string what, std::string expected, std::string actual) const {
    return syntax_error(source_, offset, std::move(what), std::move(expected), std::move(actual));
  }
  Error unexpected(std::string expected) const {
    return fail(offset(), "unexpected token", std::move(expected), describe(current()));
  }

 private:
  static bool is(const Token& token, TokenKind kind, std::string_view text) {
    return token.kind == kind && token.text == text;
  }
  std::string_view source_;
  std::vector<Token> tokens_;
  size_t index_ = 0;
};

}  // namespace espalier::text::jinja
