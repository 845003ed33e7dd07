#include "espalier/text/pipeline_json.h"

#include <fmt/format.h>

#include "espalier/base/utf8.h"

namespace espalier::text {

Error too_many_parts(const std::string& kind) {
  return Error{.what = "the " + kind + " of the tokenizer has too many parts",
               .expected = fmt::format("at most {}", kMaxParts),
               .actual = "more",
               .fix = "Use a tokenizer with fewer parts."};
}

Error unknown_part(const std::string& kind, const std::string& type, const std::string& known) {
  return Error{.what = "the tokenizer has an unknown " + kind,
               .expected = known,
               .actual = type,
               .fix = "Use a tokenizer made of these parts."};
}

Result<Regex> read_pattern(const Json& part) {
  const Json* pattern = json_find(part, "pattern");
  if (pattern != nullptr && json_find(*pattern, "Regex") != nullptr) {
    ASSIGN_OR_RETURN(const std::string regex, json_string(*pattern, "Regex"));
    return Regex::compile(regex);
  }
  if (pattern != nullptr && json_find(*pattern, "String") != nullptr) {
    ASSIGN_OR_RETURN(const std::string literal, json_string(*pattern, "String"));
    return Regex::literal(literal);
  }
  return Error{.what = "key 'pattern' is missing or has the wrong form",
               .expected = "{\"String\": ...} or {\"Regex\": ...}",
               .actual = pattern == nullptr ? "nothing" : pattern->type_name(),
               .fix = "Correct it in the tokenizer."};
}

Result<std::string> read_character(const Json& part, const std::string& key) {
  ASSIGN_OR_RETURN(const std::string text, json_string(part, key));
  if (text.empty() || character_at(text, 0).size != text.size()) {
    return Error{.what = "key '" + key + "' does not hold one character",
                 .expected = "one character",
                 .actual = "'" + text + "'",
                 .fix = "Correct it in the tokenizer."};
  }
  return text;
}

}  // namespace espalier::text
