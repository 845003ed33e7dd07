#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

#include "espalier/program/ops.h"
#include "espalier/program/text.h"

namespace espalier::program {
namespace {

enum class TokenKind : uint8_t { kWord, kNumber, kText, kPunctuation, kLineEnd, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;  // of kText: without quotes, escapes resolved
  size_t line = 1;
  size_t column = 1;
};

Error error_at(const Token& token, std::string expected, std::string actual) {
  return Error{.what = fmt::format("program text, line {}, column {}", token.line, token.column),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "See program/text.h for the form."};
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::kEnd) return "the end of the text";
  if (token.kind == TokenKind::kLineEnd) return "the end of the line";
  return fmt::format("'{}'", token.text.substr(0, 40));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '.';
}

// Splits the text into tokens, one at a time.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<Token> next() {
    skip_blanks();
    Token token;
    token.line = line_;
    token.column = position_ - line_start_ + 1;
    if (position_ >= text_.size()) return token;
    const char c = text_[position_];
    if (c == '\n') {
      token.kind = TokenKind::kLineEnd;
      line_start_ = ++position_;
      ++line_;
      return token;
    }
    if (c == '"') return quoted(std::move(token));
    if (c == '-' || is_word_character(c)) return word(std::move(token));
    token.kind = TokenKind::kPunctuation;
    token.text = c;
    ++position_;
    return token;
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() &&
           (text_[position_] == ' ' || text_[position_] == '\t' || text_[position_] == '\r')) {
      ++position_;
    }
    if (position_ < text_.size() && text_[position_] == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    }
  }

  // A bare name or a number; which of the two, the place decides ("0" may be a name, "inf" a
  // number).
  Result<Token> word(Token token) {
    const size_t first = position_++;
    const auto continues = [&](char c) {
      const char previous = text_[position_ - 1];
      return is_word_character(c) ||
             ((c == '-' || c == '+') && (previous == 'e' || previous == 'E'));
    };
    while (position_ < text_.size() && continues(text_[position_])) ++position_;
    token.text = text_.substr(first, position_ - first);
    token.kind =
        token.text[0] == '-' || is_digit(token.text[0]) ? TokenKind::kNumber : TokenKind::kWord;
    return token;
  }

  Result<Token> quoted(Token token) {
    token.kind = TokenKind::kText;
    for (++position_; position_ < text_.size() && text_[position_] != '\n'; ++position_) {
      const char c = text_[position_];
      if (c == '"') {
        ++position_;
        return token;
      }
      if (c != '\\') {
        token.text += c;
        continue;
      }
      if (!append_escape(token.text)) {
        return error_at(token, "an escape \\\\, \\\" or \\xNN", "another one");
      }
    }
    return error_at(token, "a closing quote", "the end of the line");
  }

  // At a backslash; leaves the position on the escape's last character.
  bool append_escape(std::string& out) {
    if (++position_ >= text_.size()) return false;
    const char c = text_[position_];
    if (c == '"' || c == '\\') {
      out += c;
      return true;
    }
    if (c != 'x' || position_ + 2 >= text_.size()) return false;
    unsigned value = 0;
    const char* digits = text_.data() + position_ + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) return false;
    out += static_cast<char>(value);
    position_ += 2;
    return true;
  }

  std::string_view text_;
  size_t position_ = 0;
  size_t line_ = 1;
  size_t line_start_ = 0;
};

// Recursive descent without recursion: the form has lines and flat lists only. Memory is bounded by
// the length of the text, because every number of things is a number of tokens.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Program> parse() {
    RETURN_IF_ERROR(advance());
    RETURN_IF_ERROR(skip_empty_lines());
    RETURN_IF_ERROR(parse_header());
    RETURN_IF_ERROR(skip_empty_lines());
    while (token_.kind != TokenKind::kEnd) {
      RETURN_IF_ERROR(parse_line());
      RETURN_IF_ERROR(skip_empty_lines());
    }
    if (!has_inputs_ || !has_outputs_) return expected("lines 'inputs' and 'outputs'");
    return std::move(program_);
  }

 private:
  Error expected(std::string what) const {
    return error_at(token_, std::move(what), describe(token_));
  }

  Status advance() {
    ASSIGN_OR_RETURN(token_, lexer_.next());
    return Ok{};
  }

  Status skip_empty_lines() {
    while (token_.kind == TokenKind::kLineEnd) RETURN_IF_ERROR(advance());
    return Ok{};
  }

  bool at(std::string_view punctuation) const {
    return token_.kind == TokenKind::kPunctuation && token_.text == punctuation;
  }
  bool at_word(std::string_view word) const {
    return token_.kind == TokenKind::kWord && token_.text == word;
  }

  Status take(std::string_view punctuation) {
    if (!at(punctuation)) return expected(fmt::format("'{}'", punctuation));
    return advance();
  }

  Status take_word(std::string_view word) {
    if (!at_word(word)) return expected(fmt::format("'{}'", word));
    return advance();
  }

  Status take_line_end() {
    if (token_.kind != TokenKind::kLineEnd && token_.kind != TokenKind::kEnd) {
      return expected("the end of the line");
    }
    return Ok{};
  }

  Result<std::string> take_name() {
    if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kNumber &&
        token_.kind != TokenKind::kText) {
      return expected("a name");
    }
    std::string name = std::move(token_.text);
    RETURN_IF_ERROR(advance());
    return name;
  }

  Result<int64_t> take_integer() {
    int64_t value = 0;
    const char* end = token_.text.data() + token_.text.size();
    const auto [stop, error] = std::from_chars(token_.text.data(), end, value);
    if (token_.kind != TokenKind::kNumber || error != std::errc() || stop != end) {
      return expected("an integer of 64 bits");
    }
    RETURN_IF_ERROR(advance());
    return value;
  }

  Result<double> take_double() {
    const bool numeric = token_.kind == TokenKind::kNumber || at_word("inf") || at_word("nan");
    char* stop = nullptr;
    const double value = numeric ? std::strtod(token_.text.c_str(), &stop) : 0;
    if (!numeric || stop != token_.text.c_str() + token_.text.size()) return expected("a number");
    RETURN_IF_ERROR(advance());
    return value;
  }

  Result<int32_t> take_id(std::string_view sigil) {
    RETURN_IF_ERROR(take(sigil));
    const Token at_id = token_;
    ASSIGN_OR_RETURN(const int64_t id, take_integer());
    if (id < INT32_MIN || id > INT32_MAX)
      return error_at(at_id, "an id of 32 bits", describe(at_id));
    return static_cast<int32_t>(id);
  }

  // A declaration's id, which must be the next of its kind.
  Status take_next_id(std::string_view sigil, size_t next) {
    const Token at_id = token_;
    ASSIGN_OR_RETURN(const int32_t id, take_id(sigil));
    if (id < 0 || static_cast<size_t>(id) != next) {
      return error_at(at_id, fmt::format("{}{}, the next of its kind", sigil, next),
                      fmt::format("{}{}", sigil, id));
    }
    return Ok{};
  }

  Result<int64_t> take_field(std::string_view name) {
    RETURN_IF_ERROR(take_word(name));
    RETURN_IF_ERROR(take("="));
    return take_integer();
  }

  Result<Shape> take_shape() {
    Shape shape;
    RETURN_IF_ERROR(take("["));
    ASSIGN_OR_RETURN(shape.rows, take_integer());
    RETURN_IF_ERROR(take(","));
    ASSIGN_OR_RETURN(shape.channels, take_integer());
    RETURN_IF_ERROR(take("]"));
    return shape;
  }

  Status parse_header() {
    RETURN_IF_ERROR(take_word("program"));
    ASSIGN_OR_RETURN(program_.name, take_name());
    ASSIGN_OR_RETURN(program_.rows, take_field("rows"));
    ASSIGN_OR_RETURN(program_.kv_rows, take_field("kv_rows"));
    ASSIGN_OR_RETURN(program_.selected, take_field("selected"));
    RETURN_IF_ERROR(take_word("head"));
    RETURN_IF_ERROR(take("="));
    for (const Head head : {Head::kArgmax, Head::kLogits, Head::kNone}) {
      if (!at_word(name_of(head))) continue;
      program_.head = head;
      RETURN_IF_ERROR(advance());
      return take_line_end();
    }
    return expected("'argmax', 'logits' or 'none'");
  }

  Status parse_line() {
    if (at_word("state")) return parse_state();
    if (at_word("weight")) return parse_weight();
    if (at_word("value")) return parse_value();
    if (at_word("inputs")) return parse_ids(program_.inputs, has_inputs_);
    if (at_word("outputs")) return parse_ids(program_.outputs, has_outputs_);
    return parse_op();
  }

  Status parse_state() {
    State state;
    RETURN_IF_ERROR(advance());
    RETURN_IF_ERROR(take_next_id("$", program_.states.size()));
    ASSIGN_OR_RETURN(state.name, take_name());
    if (!at_word("key_value") && !at_word("short_conv")) {
      return expected("'key_value' or 'short_conv'");
    }
    state.kind = at_word("key_value") ? StateKind::kKeyValue : StateKind::kShortConv;
    RETURN_IF_ERROR(advance());
    ASSIGN_OR_RETURN(state.shape, take_shape());
    program_.states.push_back(std::move(state));
    return take_line_end();
  }

  Status parse_weight() {
    Weight weight;
    RETURN_IF_ERROR(advance());
    RETURN_IF_ERROR(take_next_id("@", program_.weights.size()));
    ASSIGN_OR_RETURN(weight.tensor, take_name());
    ASSIGN_OR_RETURN(weight.first_row, take_field("rows"));
    RETURN_IF_ERROR(take("+"));
    ASSIGN_OR_RETURN(weight.rows, take_integer());
    RETURN_IF_ERROR(take("/"));
    ASSIGN_OR_RETURN(weight.tensor_rows, take_integer());
    ASSIGN_OR_RETURN(weight.columns, take_field("columns"));
    program_.weights.push_back(std::move(weight));
    return take_line_end();
  }

  Status parse_value() {
    Value value;
    RETURN_IF_ERROR(advance());
    RETURN_IF_ERROR(take_next_id("%", program_.values.size()));
    ASSIGN_OR_RETURN(value.name, take_name());
    const auto dtype = encoding_from_name(token_.text);
    if (token_.kind != TokenKind::kWord || !dtype) return expected("a type such as f32");
    value.dtype = *dtype;
    RETURN_IF_ERROR(advance());
    ASSIGN_OR_RETURN(value.shape, take_shape());
    program_.values.push_back(std::move(value));
    return take_line_end();
  }

  Status parse_ids(std::vector<ValueId>& ids, bool& seen) {
    if (seen) return expected("this line once");
    seen = true;
    RETURN_IF_ERROR(advance());
    while (at("%")) {
      ASSIGN_OR_RETURN(const ValueId id, take_id("%"));
      ids.push_back(id);
    }
    return take_line_end();
  }

  // %7 = add(%5, %6); kv_write(%1, %2) $0
  Status parse_op() {
    Op op;
    if (at("%")) {
      RETURN_IF_ERROR(parse_list("%", op.outputs));
      RETURN_IF_ERROR(take("="));
    }
    const OpInfo* info = token_.kind == TokenKind::kWord ? find_op(token_.text) : nullptr;
    if (info == nullptr) return expected("a declaration or an op of the op table");
    op.kind = info->kind;
    RETURN_IF_ERROR(advance());
    RETURN_IF_ERROR(take("("));
    if (at("%")) RETURN_IF_ERROR(parse_list("%", op.inputs));
    RETURN_IF_ERROR(take(")"));
    while (at("@")) {
      ASSIGN_OR_RETURN(const WeightId id, take_id("@"));
      op.weights.push_back(id);
    }
    if (at("$")) {
      ASSIGN_OR_RETURN(op.state, take_id("$"));
    }
    if (at("{")) RETURN_IF_ERROR(parse_attributes(op.attributes));
    program_.ops.push_back(std::move(op));
    return take_line_end();
  }

  Status parse_list(std::string_view sigil, std::vector<ValueId>& ids) {
    for (;;) {
      ASSIGN_OR_RETURN(const ValueId id, take_id(sigil));
      ids.push_back(id);
      if (!at(",")) return Ok{};
      RETURN_IF_ERROR(advance());
    }
  }

  Status parse_attributes(std::vector<Attribute>& attributes) {
    do {
      RETURN_IF_ERROR(advance());  // '{' or ','
      Attribute attribute;
      ASSIGN_OR_RETURN(attribute.name, take_name());
      RETURN_IF_ERROR(take("="));
      RETURN_IF_ERROR(parse_attribute_value(attribute));
      attributes.push_back(std::move(attribute));
    } while (at(","));
    return take("}");
  }

  Status parse_attribute_value(Attribute& attribute) {
    if (token_.kind == TokenKind::kText) {
      ASSIGN_OR_RETURN(attribute.value, take_name());
      return Ok{};
    }
    if (at("[")) {
      ASSIGN_OR_RETURN(attribute.value, take_doubles());
      return Ok{};
    }
    const bool integer = token_.kind == TokenKind::kNumber &&
                         token_.text.find_first_not_of("-0123456789") == std::string::npos;
    if (integer) {
      ASSIGN_OR_RETURN(attribute.value, take_integer());
    } else {
      ASSIGN_OR_RETURN(attribute.value, take_double());
    }
    return Ok{};
  }

  Result<std::vector<double>> take_doubles() {
    std::vector<double> values;
    RETURN_IF_ERROR(advance());  // '['
    while (!at("]")) {
      if (!values.empty()) RETURN_IF_ERROR(take(","));
      ASSIGN_OR_RETURN(const double value, take_double());
      values.push_back(value);
    }
    RETURN_IF_ERROR(advance());
    return values;
  }

  Lexer lexer_;
  Token token_;
  Program program_;
  bool has_inputs_ = false;
  bool has_outputs_ = false;
};

}  // namespace

Result<Program> parse(std::string_view text) {
  if (text.size() > kMaxProgramTextBytes) {
    return Error{.what = "program text is too long",
                 .expected = fmt::format("at most {} bytes", kMaxProgramTextBytes),
                 .actual = fmt::format("{} bytes", text.size()),
                 .fix = "Print the program again."};
  }
  return Parser(text).parse();
}

}  // namespace espalier::program
