// Lexer: template source to tokens, with jinja2's white space rules (trim_blocks and lstrip_blocks
// on, "-" and "+" signs), raw blocks and comments resolved here. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/text/jinja/source.h"

namespace espalier::text::jinja {

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text = {};  // data, name, operator, or the value of a string
  int64_t integer = 0;
  double real = 0;
  Offset offset = 0;
};

// For messages: "'endfor'", "end of statement block".
std::string describe(const Token& token);

// `source` is normalised. The last token is kEnd.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace espalier::text::jinja
