// Filters that read and give text (declared in filter_functions.h).
#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/escape.h"
#include "espalier/text/jinja/filter_functions.h"
#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja::filters {
namespace {

// str(value), markup staying markup.
Result<Value> soft_string(Machine& machine, const Value& value) {
  if (value.is(Kind::kString)) return value;
  ASSIGN_OR_RETURN(Text text, to_text(machine.budget, value));
  return Value::string(std::move(text));
}

template <typename Transform>
Result<Value> transform_text(Machine& machine, const Value& value, Transform transform) {
  ASSIGN_OR_RETURN(const Value text, soft_string(machine, value));
  return Value::string(transform(text.text()), text.is_markup());
}

// The filter `title` begins a word after white space and after these: unlike str.title(), not after
// "'".
bool begins_word(char32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

Text title_words(const Text& text) {
  Text result;
  Text word;
  const auto finish_word = [&] {
    if (word.empty()) return;
    const size_t first = decode_at(word.bytes(), 0).size;
    result.append(change_case(word.substr(0, first), Case::kUpper));
    result.append(change_case(word.substr(first, word.size()), Case::kLower));
    word = Text();
  };
  const std::string& bytes = text.bytes();
  for (size_t i = 0; i < bytes.size();) {
    const Character c = decode_at(bytes, i);
    const Text character = text.substr(i, i + c.size);
    if (begins_word(c.code_point)) finish_word();
    (begins_word(c.code_point) ? result : word).append(character);
    i += c.size;
  }
  finish_word();
  return result;
}

bool is_url_safe(char c, bool in_query) {
  const auto u = static_cast<unsigned char>(c);
  if (std::isalnum(u) != 0 && u < 0x80) return true;
  return c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !in_query);
}

Text url_quote(const Text& text, bool in_query) {
  Text out;
  text.for_each_run([&](std::string_view run, bool from_user) {
    for (const char c : run) {
      if (is_url_safe(c, in_query)) {
        out.append(std::string_view(&c, 1), from_user);
      } else if (c == ' ' && in_query) {
        out.append("+", from_user);
      } else {
        out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), from_user);
      }
    }
  });
  return out;
}

Result<JsonStyle> json_style(const Bound& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.truth_or(0, false);
  style.sort_keys = arguments.truth_or(3, false);
  const Value& indent = arguments.value(1);
  if (indent.is_integral()) {
    if (indent.integer() > 1000)
      return type_error("the indent is too large", "at most 1000", indent);
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(indent.integer(), 0)), ' ');
  } else if (indent.is(Kind::kString)) {
    style.indent = indent.text().bytes();
  } else if (!indent.is(Kind::kNone)) {
    return type_error("the indent of tojson", "int, str or none", indent);
  }
  if (style.indent.has_value()) style.item_separator = ",";
  const Value& separators = arguments.value(2);
  if (separators.is(Kind::kNone)) return style;
  if (!separators.is_array() || separators.items().size() != 2) {
    return type_error("the separators of tojson", "two strings", separators);
  }
  for (const Value& separator : separators.items()) {
    if (!separator.is(Kind::kString)) return type_error("a separator of tojson", "str", separator);
  }
  style.item_separator = separators.items()[0].text().bytes();
  style.key_separator = separators.items()[1].text().bytes();
  return style;
}

}  // namespace

Result<Value> upper(Machine& machine, const Value& value, const Bound&) {
  return transform_text(machine, value,
                        [](const Text& text) { return change_case(text, Case::kUpper); });
}
Result<Value> lower(Machine& machine, const Value& value, const Bound&) {
  return transform_text(machine, value,
                        [](const Text& text) { return change_case(text, Case::kLower); });
}
Result<Value> capitalize_text(Machine& machine, const Value& value, const Bound&) {
  return transform_text(machine, value, capitalize);
}
Result<Value> title(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(const Value text, soft_string(machine, value));
  RETURN_IF_ERROR(machine.budget.spend(text.text().size(), 8));
  return Value::string(title_words(text.text()));
}
Result<Value> string(Machine& machine, const Value& value, const Bound&) {
  return soft_string(machine, value);
}

Result<Value> trim(Machine& machine, const Value& value, const Bound& arguments) {
  if (arguments.value(0).is(Kind::kNone)) {
    return transform_text(machine, value,
                          [](const Text& text) { return strip(text, {}, true, true); });
  }
  ASSIGN_OR_RETURN(const Text chars, arguments.text(0));
  return transform_text(machine, value,
                        [&](const Text& text) { return strip(text, chars.bytes(), true, true); });
}

Result<Value> center(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t width, arguments.integer_or(0, 80));
  ASSIGN_OR_RETURN(const Value text, soft_string(machine, value));
  ASSIGN_OR_RETURN(Text padded,
                   pad(machine.budget, text.text(), width, Text(" ", false), Side::kBoth));
  return Value::string(std::move(padded), text.is_markup());
}

Result<Value> replace_text(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text text, to_text(machine.budget, value));
  ASSIGN_OR_RETURN(const Text from, to_text(machine.budget, arguments.value(0)));
  ASSIGN_OR_RETURN(const Text to, to_text(machine.budget, arguments.value(1)));
  const bool limited = !arguments.value(2).is(Kind::kNone);
  int64_t limit = -1;
  if (limited) {
    ASSIGN_OR_RETURN(limit, arguments.integer(2));
  }
  ASSIGN_OR_RETURN(Text result, replace(machine.budget, text, from, to, limit));
  return Value::string(std::move(result));
}

Result<Value> join(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  std::vector<Text> parts;
  parts.reserve(items.size());
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value part, machine.attribute_path(item, arguments.value(1)));
    ASSIGN_OR_RETURN(Text text, to_text(machine.budget, part));
    parts.push_back(std::move(text));
  }
  Text separator;
  if (arguments.has(0)) {
    ASSIGN_OR_RETURN(separator, to_text(machine.budget, arguments.value(0)));
  }
  ASSIGN_OR_RETURN(Text joined, join_texts(machine.budget, separator, parts));
  return Value::string(std::move(joined));
}

Result<Value> indent(Machine& machine, const Value& value, const Bound& arguments) {
  if (!value.is(Kind::kString)) return type_error("only text can be indented", "str", value);
  Text margin;
  if (arguments.value(0).is(Kind::kString)) {
    margin = arguments.value(0).text();
  } else {
    ASSIGN_OR_RETURN(const int64_t width, arguments.integer_or(0, 4));
    ASSIGN_OR_RETURN(margin, repeat_text(machine.budget, Text(" ", false),
                                         static_cast<uint64_t>(std::max<int64_t>(width, 0))));
  }
  const bool first = arguments.truth_or(1, false);
  const bool blank = arguments.truth_or(2, false);
  Text ended = value.text();
  ended.append("\n", false);  // so that there is a first line, and an empty one at the end stays
  ASSIGN_OR_RETURN(std::vector<Text> lines, split_lines(machine.budget, ended, false));
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indented = i == 0 ? first : blank || !lines[i].empty();
    if (!indented) continue;
    RETURN_IF_ERROR(machine.budget.spend(margin.size()));
    Text line = margin;
    line.append(lines[i]);
    lines[i] = std::move(line);
  }
  ASSIGN_OR_RETURN(Text text, join_texts(machine.budget, Text("\n", false), lines));
  return Value::string(std::move(text), value.is_markup());
}

Result<Value> truncate(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t length, arguments.integer_or(0, 255));
  ASSIGN_OR_RETURN(const int64_t leeway,
                   arguments.value(3).is(Kind::kNone) ? Result<int64_t>(5) : arguments.integer(3));
  Text end("...", false);
  if (arguments.has(2)) {
    ASSIGN_OR_RETURN(end, arguments.text(2));
  }
  const auto end_length = static_cast<int64_t>(code_point_count(end.bytes()));
  if (length < end_length || leeway < 0) {
    return Error{.what = "truncate cannot fit its ending",
                 .expected = "length >= that of the ending",
                 .actual = fmt::format("{}", length),
                 .fix = "Correct the template."};
  }
  ASSIGN_OR_RETURN(const Value size, machine.filter("length", value, Arguments{}));
  if (size.integer() <= length + std::min(leeway, INT64_MAX - length)) return value;
  if (!value.is(Kind::kString)) return type_error("only text can be truncated", "str", value);
  const Text& text = value.text();
  Text kept = text.substr(0, byte_offset(text.bytes(), static_cast<size_t>(length - end_length)));
  if (!arguments.truth_or(1, false)) {
    ASSIGN_OR_RETURN(const std::vector<Text> parts, split_from_right(machine.budget, kept, " ", 1));
    kept = parts[0];
  }
  kept.append(end);
  return Value::string(std::move(kept), value.is_markup());
}

Result<Value> wordcount(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(const Value text, soft_string(machine, value));
  const std::string& bytes = text.text().bytes();
  int64_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < bytes.size();) {
    const Character c = decode_at(bytes, i);
    const bool is_word = c.code_point == '_' || is_alphanumeric(c.code_point);
    words += is_word && !in_word ? 1 : 0;
    in_word = is_word;
    i += c.size;
  }
  return Value::integer(words);
}

Result<Value> format(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Value text, soft_string(machine, value));
  const auto& named = arguments.named_rest();
  if (!named.empty() && !arguments.rest().empty()) {
    return Error{.what = "format takes positional or named values",
                 .expected = "one kind",
                 .actual = "both",
                 .fix = "Correct the template."};
  }
  if (named.empty()) return percent_format(machine, text, Value::tuple(arguments.rest()));
  auto values = std::make_shared<Dict>();
  for (const auto& [name, argument] : named) values->set_name(name, false, argument);
  return percent_format(machine, text, Value::dict(std::move(values)));
}

Result<Value> escape(Machine& machine, const Value& value, const Bound&) {
  return to_markup(machine.budget, value);
}
Result<Value> forceescape(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(Text text, to_text(machine.budget, value));
  return to_markup(machine.budget, Value::string(std::move(text)));
}
Result<Value> safe(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(Text text, to_text(machine.budget, value));
  return Value::string(std::move(text), true);
}

Result<Value> striptags(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(const Text text, to_text(machine.budget, value));
  const std::string& bytes = text.bytes();
  Text plain;
  size_t position = 0;
  for (size_t tag = bytes.find('<'); tag != std::string::npos; tag = bytes.find('<', position)) {
    const bool is_comment = bytes.compare(tag, 4, "<!--") == 0;
    const size_t end = is_comment ? bytes.find("-->", tag + 4) : bytes.find('>', tag);
    if (end == std::string::npos) break;
    plain.append(text.substr(position, tag));
    position = end + (is_comment ? 3 : 1);
  }
  plain.append(text.substr(position, bytes.size()));
  ASSIGN_OR_RETURN(const std::vector<Text> words, split(machine.budget, plain, {}, -1));
  ASSIGN_OR_RETURN(Text result, join_texts(machine.budget, Text(" ", false), words));
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"},    {"&gt;", ">"},  {"&#34;", "\""},
      {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) {
    ASSIGN_OR_RETURN(
        result, replace(machine.budget, result, Text(entity, false), Text(character, true), -1));
  }
  return Value::string(std::move(result));
}

Result<Value> urlencode(Machine& machine, const Value& value, const Bound&) {
  const bool is_scalar = value.is(Kind::kString) || value.is_number() || value.is(Kind::kNone);
  if (is_scalar) {
    ASSIGN_OR_RETURN(const Text text, to_text(machine.budget, value));
    RETURN_IF_ERROR(machine.budget.spend(text.size(), 3));
    return Value::string(url_quote(text, false));
  }
  Value pairs = value;
  if (value.is(Kind::kDict)) {
    ASSIGN_OR_RETURN(pairs, machine.filter("items", value, Arguments{}));
  }
  ASSIGN_OR_RETURN(const Values entries, machine.iterate(pairs));
  std::vector<Text> parts;
  for (const Value& entry : entries) {
    ASSIGN_OR_RETURN(const Values pair, machine.iterate(entry));
    if (pair.size() != 2) return type_error("urlencode wants pairs", "a key and a value", entry);
    ASSIGN_OR_RETURN(const Text key, to_text(machine.budget, pair[0]));
    ASSIGN_OR_RETURN(const Text content, to_text(machine.budget, pair[1]));
    Text part = url_quote(key, true);
    part.append("=", false);
    part.append(url_quote(content, true));
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(Text query, join_texts(machine.budget, Text("&", false), parts));
  return Value::string(std::move(query));
}

Result<Value> tojson(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const JsonStyle style, json_style(arguments));
  ASSIGN_OR_RETURN(Text text, to_json(machine.budget, value, style));
  return Value::string(std::move(text));
}

}  // namespace espalier::text::jinja::filters
