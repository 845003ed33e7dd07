#include "espalier/base/json.h"

namespace espalier {
namespace {

// Deepest nesting of brackets outside strings; counted before parsing, because the parser recurses.
int nesting_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

template <typename T>
Result<T> typed(const Json& object, const std::string& key, bool (Json::*is)() const noexcept,
                const char* expected) {
  const Json* member = json_find(object, key);
  if (member == nullptr) {
    return Error{.what = fmt::format("key '{}' is missing", key),
                 .expected = expected,
                 .actual = "nothing",
                 .fix = "Add it to the file."};
  }
  if (!(member->*is)()) {
    return Error{
        .what = fmt::format("key '{}' has the wrong type", key),
        .expected = expected,
        .actual = member->dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
        .fix = "Correct it in the file."};
  }
  return member->get<T>();
}

template <typename T, typename Get>
Result<T> typed_or(const Json& object, const std::string& key, T fallback, Get get) {
  if (json_find(object, key) == nullptr) return fallback;
  return get(object, key);
}

template <typename J>
Result<J> parse_as(std::string_view text, const std::string& source,
                   const typename J::parser_callback_t& callback) {
  if (nesting_depth(text) > kJsonDepthLimit) {
    return Error{.what = source + ": JSON is nested too deeply",
                 .expected = fmt::format("at most {} levels", kJsonDepthLimit),
                 .actual = fmt::format("{}", nesting_depth(text)),
                 .fix = "The file is damaged or hostile."};
  }
  // The library takes a zero byte for the end of the text and would hide what follows.
  if (text.find('\0') != std::string_view::npos) {
    return Error{.what = source + ": not valid JSON",
                 .expected = "a JSON document",
                 .actual = "a zero byte in it",
                 .fix = "Check that the file was downloaded completely."};
  }
  try {
    return J::parse(text, callback);
  } catch (const typename J::exception& exception) {
    return Error{.what = source + ": not valid JSON",
                 .expected = "a JSON document",
                 .actual = json_problem(exception),
                 .fix = "Check that the file was downloaded completely."};
  }
}

}  // namespace

std::string json_problem(const std::exception& exception) {
  const std::string_view text = exception.what();
  const size_t end = text.find("] ");
  const bool has_number = text.starts_with("[json.exception.") && end != text.npos;
  return std::string(has_number ? text.substr(end + 2) : text);
}

Result<Json> parse_json(std::string_view text, const std::string& source) {
  return parse_as<Json>(text, source, nullptr);
}

Result<OrderedJson> parse_ordered_json(std::string_view text, const std::string& source) {
  // Each new key is compared with all keys before it, so their number is limited. Keys past the
  // limit are dropped while parsing (that costs nothing), and the document is refused afterwards.
  std::vector<size_t> members;
  bool too_many = false;
  const auto count_members = [&](int, OrderedJson::parse_event_t event, OrderedJson&) {
    if (event == OrderedJson::parse_event_t::object_start) members.push_back(0);
    if (event == OrderedJson::parse_event_t::object_end) members.pop_back();
    if (event != OrderedJson::parse_event_t::key) return true;
    const bool fits = ++members.back() <= kOrderedJsonMemberLimit;
    too_many |= !fits;
    return fits;
  };
  auto document = parse_as<OrderedJson>(text, source, count_members);
  if (document.ok() && too_many) {
    return Error{.what = source + ": a JSON object has too many members",
                 .expected = fmt::format("at most {}", kOrderedJsonMemberLimit),
                 .actual = "more",
                 .fix = "Split the object."};
  }
  return document;
}

const Json* json_find(const Json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<int64_t> json_integer(const Json& object, const std::string& key) {
  const Json* member = json_find(object, key);
  if (member != nullptr && member->is_number_unsigned() &&
      member->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return Error{.what = fmt::format("key '{}' is too large", key),
                 .expected = "at most 2^63 - 1",
                 .actual = member->dump(),
                 .fix = "Correct it in the file."};
  }
  return typed<int64_t>(object, key, &Json::is_number_integer, "an integer");
}
Result<double> json_number(const Json& object, const std::string& key) {
  return typed<double>(object, key, &Json::is_number, "a number");
}
Result<bool> json_bool(const Json& object, const std::string& key) {
  return typed<bool>(object, key, &Json::is_boolean, "true or false");
}
Result<std::string> json_string(const Json& object, const std::string& key) {
  return typed<std::string>(object, key, &Json::is_string, "a string");
}
Result<int64_t> json_integer_or(const Json& object, const std::string& key, int64_t fallback) {
  return typed_or(object, key, fallback, json_integer);
}
Result<double> json_number_or(const Json& object, const std::string& key, double fallback) {
  return typed_or(object, key, fallback, json_number);
}
Result<bool> json_bool_or(const Json& object, const std::string& key, bool fallback) {
  return typed_or(object, key, fallback, json_bool);
}
Result<std::string> json_string_or(const Json& object, const std::string& key,
                                   const std::string& fallback) {
  return typed_or(object, key, fallback, json_string);
}

}  // namespace espalier
