#include "espalier/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "espalier/text/jinja/literals.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

// Longest first, so that the first match is the right one.
constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (position_ < source_.size()) RETURN_IF_ERROR(lex_data());
    add(TokenKind::kEnd, source_.size());
    return std::move(tokens_);
  }

 private:
  bool starts_with(std::string_view text) const {
    return source_.substr(position_).starts_with(text);
  }
  void add(TokenKind kind, size_t offset, std::string text = {}) {
    tokens_.push_back(Token{.kind = kind, .text = std::move(text), .offset = Offset(offset)});
  }
  Error fail(size_t offset, std::string what, std::string expected, std::string actual) const {
    return syntax_error(source_, Offset(offset), std::move(what), std::move(expected),
                        std::move(actual));
  }

  void skip_spaces() {
    while (position_ < source_.size()) {
      const Character c = decode_at(source_, position_);
      if (!is_space(c.code_point)) return;
      position_ += c.size;
    }
  }

  // Position of the next "{{", "{%" or "{#"; the end where there is none.
  size_t find_tag(size_t from) const {
    for (size_t i = source_.find('{', from); i != std::string_view::npos;
         i = source_.find('{', i + 1)) {
      if (i + 1 < source_.size() &&
          (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) {
        return i;
      }
    }
    return source_.size();
  }

  // Template text up to a tag, with the white space before the tag removed as `sign` and
  // lstrip_blocks ask.
  void add_data(size_t begin, size_t end, char sign, bool strips_line) {
    std::string_view data = source_.substr(begin, end - begin);
    if (sign == '-') {
      data = data.substr(0, data.size() - trailing_space_bytes(data));
    } else if (sign != '+' && strips_line) {
      const size_t line_begin = data.rfind('\n') + 1;
      const std::string_view line = data.substr(line_begin);
      if ((line_begin > 0 || at_line_start_) && trailing_space_bytes(line) == line.size()) {
        data = data.substr(0, line_begin);
      }
    }
    if (!data.empty()) add(TokenKind::kData, begin, std::string(data));
  }

  static size_t trailing_space_bytes(std::string_view text) {
    size_t trailing = 0;
    for (size_t i = 0; i < text.size();) {
      const Character c = decode_at(text, i);
      trailing = is_space(c.code_point) ? trailing + c.size : 0;
      i += c.size;
    }
    return trailing;
  }

  Status lex_data() {
    const size_t begin = position_;
    const size_t tag = find_tag(begin);
    if (tag == source_.size()) {
      add(TokenKind::kData, begin, std::string(source_.substr(begin)));
      position_ = tag;
      return Ok{};
    }
    const char second = source_[tag + 1];
    position_ = tag + 2;
    char sign = ' ';
    if (position_ < source_.size() && (source_[position_] == '-' || source_[position_] == '+')) {
      sign = source_[position_++];
    }
    add_data(begin, tag, sign, second != '{');
    at_line_start_ = false;
    if (second == '#') return lex_comment(tag);
    if (second == '%') {
      const size_t after_sign = position_;
      if (take_raw_tag("raw", false)) return lex_raw(tag);
      position_ = after_sign;
      return lex_code(tag, TokenKind::kBlockBegin, TokenKind::kBlockEnd, "%}");
    }
    return lex_code(tag, TokenKind::kVariableBegin, TokenKind::kVariableEnd, "}}");
  }

  // Consumes "+%}", "-%}" with the space after it, or "%}" with one line break after it.
  bool take_end(std::string_view end, bool is_variable) {
    const char sign = source_[position_];
    const bool signed_end = (sign == '-' || (sign == '+' && !is_variable)) &&
                            source_.substr(position_ + 1).starts_with(end);
    if (!signed_end && !starts_with(end)) return false;
    position_ += end.size() + (signed_end ? 1 : 0);
    if (signed_end && sign == '-') {
      skip_spaces();
    } else if (!signed_end && !is_variable && starts_with("\n")) {
      ++position_;
    }
    at_line_start_ = source_[position_ - 1] == '\n';
    return true;
  }

  // An unclosed comment or raw block with nothing behind it is no error in jinja2, so it is none
  // here.
  Status lex_comment(size_t tag) {
    const size_t begin = position_;
    for (; position_ < source_.size(); ++position_) {
      const char c = source_[position_];
      if ((c == '#' || c == '-' || c == '+') && take_end("#}", false)) return Ok{};
    }
    if (begin == source_.size()) return Ok{};
    return fail(tag, "a comment does not end", "#}", "end of template");
  }

  // "raw %}" or "endraw %}" from here, after "{%" and its sign.
  bool take_raw_tag(std::string_view name, bool is_end) {
    skip_spaces();
    if (!starts_with(name)) return false;
    position_ += name.size();
    skip_spaces();
    if (position_ >= source_.size()) return false;
    if (is_end) return take_end("%}", false);
    const bool strips = starts_with("-%}");
    if (!strips && !starts_with("%}")) return false;
    position_ += strips ? 3 : 2;
    if (strips) skip_spaces();
    at_line_start_ = source_[position_ - 1] == '\n';
    return true;
  }

  Status lex_raw(size_t tag) {
    const size_t begin = position_;
    for (size_t i = source_.find("{%", begin); i != std::string_view::npos;
         i = source_.find("{%", i + 1)) {
      position_ = i + 2;
      char sign = ' ';
      if (position_ < source_.size() && (source_[position_] == '-' || source_[position_] == '+')) {
        sign = source_[position_++];
      }
      const bool at_line_start = at_line_start_;
      if (!take_raw_tag("endraw", true)) continue;
      const bool after_end = std::exchange(at_line_start_, at_line_start);
      add_data(begin, i, sign, true);
      at_line_start_ = after_end;
      return Ok{};
    }
    if (begin == source_.size()) return Ok{};
    return fail(tag, "a raw block does not end", "{% endraw %}", "end of template");
  }

  Status lex_code(size_t tag, TokenKind begin, TokenKind end, std::string_view end_text) {
    add(begin, tag);
    brackets_.clear();
    while (true) {
      if (position_ >= source_.size()) {
        return fail(tag, "a tag does not end", std::string(end_text), "end of template");
      }
      const size_t offset = position_;
      if (brackets_.empty() && take_end(end_text, end == TokenKind::kVariableEnd)) {
        add(end, offset);
        return Ok{};
      }
      RETURN_IF_ERROR(lex_token());
    }
  }

  Status lex_token() {
    const Character c = decode_at(source_, position_);
    if (is_space(c.code_point)) {
      position_ += c.size;
      return Ok{};
    }
    if (c.code_point >= '0' && c.code_point <= '9') return lex_number();
    if (c.code_point == '\'' || c.code_point == '"') return lex_string();
    if (c.code_point == '_' || is_alphanumeric(c.code_point)) return lex_name();
    return lex_operator();
  }

  Status lex_number() {
    const bool after_dot = position_ > 0 && source_[position_ - 1] == '.';
    ASSIGN_OR_RETURN(NumberLiteral literal, scan_number(source_, Offset(position_), !after_dot));
    tokens_.push_back(Token{.kind = literal.is_float ? TokenKind::kFloat : TokenKind::kInteger,
                            .integer = literal.integer,
                            .real = literal.real,
                            .offset = Offset(position_)});
    position_ += literal.length;
    return Ok{};
  }

  Status lex_string() {
    const size_t begin = position_;
    const char quote = source_[begin];
    size_t end = begin + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) {
      return fail(begin, "a string does not end", std::string(1, quote), "end of template");
    }
    ASSIGN_OR_RETURN(std::string text, unescape_string(source_, Offset(begin + 1), Offset(end)));
    add(TokenKind::kString, begin, std::move(text));
    position_ = end + 1;
    return Ok{};
  }

  Status lex_name() {
    const size_t begin = position_;
    while (position_ < source_.size()) {
      const Character c = decode_at(source_, position_);
      if (c.code_point != '_' && !is_alphanumeric(c.code_point)) break;
      position_ += c.size;
    }
    if (is_numeric(decode_at(source_, begin).code_point)) {
      return fail(begin, "a name begins with a digit", "a letter or '_'",
                  std::string(source_.substr(begin, position_ - begin)));
    }
    add(TokenKind::kName, begin, std::string(source_.substr(begin, position_ - begin)));
    return Ok{};
  }

  Status lex_operator() {
    const auto found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                    [&](std::string_view text) { return starts_with(text); });
    if (found == std::end(kOperators)) {
      const size_t length = decode_at(source_, position_).size;
      return fail(position_, "an unknown character in a tag", "an operator, a name or a literal",
                  fmt::format("'{}'", source_.substr(position_, length)));
    }
    RETURN_IF_ERROR(balance((*found)[0]));
    add(TokenKind::kOperator, position_, std::string(*found));
    position_ += found->size();
    return Ok{};
  }

  Status balance(char bracket) {
    const std::string_view open = "([{", close = ")]}";
    if (const size_t i = open.find(bracket); i != std::string_view::npos) {
      brackets_ += close[i];
    } else if (close.find(bracket) != std::string_view::npos) {
      if (brackets_.empty() || brackets_.back() != bracket) {
        return fail(
            position_, "a bracket that was not opened",
            brackets_.empty() ? "no closing bracket" : fmt::format("'{}'", brackets_.back()),
            fmt::format("'{}'", bracket));
      }
      brackets_.pop_back();
    }
    return Ok{};
  }

  std::string_view source_;
  size_t position_ = 0;
  bool at_line_start_ = true;  // what was consumed last ended with a line break
  std::string brackets_;       // the closing brackets that are due, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kName:
    case TokenKind::kOperator:
      break;
  }
  return fmt::format("'{}'", token.text);
}

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace espalier::text::jinja
