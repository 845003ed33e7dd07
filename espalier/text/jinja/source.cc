#include "espalier/text/jinja/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {

std::string normalize_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
      continue;
    }
    out += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

std::string normalize_source(std::string_view source) {
  std::string out = normalize_newlines(source);
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

Error at(std::string_view source, Offset offset, const Error& error) {
  if (error.what.starts_with("line ")) return error;
  const std::string_view before = source.substr(0, std::min<size_t>(offset, source.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  const size_t column = 1 + code_point_count(before.substr(line_begin));
  return error.with_context(fmt::format("line {}, column {}", line, column));
}

Error syntax_error(std::string_view source, Offset offset, std::string what, std::string expected,
                   std::string actual) {
  return at(source, offset,
            Error{.what = std::move(what),
                  .expected = std::move(expected),
                  .actual = std::move(actual),
                  .fix = "Correct the template."});
}

}  // namespace espalier::text::jinja
