// json.dumps for values (declared in represent.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  Status write(const Value& value) {
    from_user_ |= value.from_user();
    RETURN_IF_ERROR(write_kind(value));
    return budget_.spend(Budget::kStepBytes / 4);
  }
  Text finish() { return Text(out_, from_user_); }

 private:
  Status write_kind(const Value& value) {
    switch (value.kind()) {
      case Kind::kString:
        return write_string(value.text().bytes());
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        return add(scalar(value));
      case Kind::kList:
      case Kind::kTuple:
        return write_list(value.items());
      case Kind::kDict:
        return write_dict(value.dict());
      default:
        return type_error("tojson cannot write this value",
                          "a dict, list, string, number, bool or none", value);
    }
  }

  static std::string scalar(const Value& value) {
    if (value.is(Kind::kNone)) return "null";
    if (value.is(Kind::kBool)) return value.boolean() ? "true" : "false";
    if (value.is(Kind::kInt)) return fmt::format("{}", value.integer());
    const double real = value.number();
    if (std::isnan(real)) return "NaN";
    if (std::isinf(real)) return real < 0 ? "-Infinity" : "Infinity";
    return float_repr(real);
  }

  // Pays before it writes: separators and indentation are as long as the template wishes.
  Status add(std::string_view text) {
    RETURN_IF_ERROR(budget_.spend(text.size()));
    RETURN_IF_ERROR(budget_.check_size(out_.size() + text.size()));
    out_ += text;
    return Ok{};
  }

  Status new_line() {
    if (!style_.indent.has_value()) return Ok{};
    RETURN_IF_ERROR(add("\n"));
    for (int i = 0; i < level_; ++i) RETURN_IF_ERROR(add(*style_.indent));
    return Ok{};
  }

  Status write_list(const Values& items) {
    if (items.empty()) return add("[]");
    RETURN_IF_ERROR(add("["));
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) RETURN_IF_ERROR(add(style_.item_separator));
      RETURN_IF_ERROR(new_line());
      RETURN_IF_ERROR(write(items[i]));
    }
    --level_;
    RETURN_IF_ERROR(new_line());
    return add("]");
  }

  // Sorted as Python sorts the items of a dict: by key, before keys become strings.
  Result<std::vector<size_t>> order_of(const Dict& dict) {
    std::vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (!style_.sort_keys) return order;
    std::optional<Error> failure;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      auto result = less(budget_, dict.entries[a].first, dict.entries[b].first);
      if (!result.ok() && !failure.has_value()) failure = result.error();
      return result.ok() && result.value();
    });
    if (failure.has_value()) return *failure;
    return order;
  }

  Status write_dict(const Dict& dict) {
    if (dict.entries.empty()) return add("{}");
    ASSIGN_OR_RETURN(const std::vector<size_t> order, order_of(dict));
    RETURN_IF_ERROR(add("{"));
    ++level_;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0) RETURN_IF_ERROR(add(style_.item_separator));
      RETURN_IF_ERROR(new_line());
      const auto& [key, value] = dict.entries[order[i]];
      RETURN_IF_ERROR(write_key(key));
      RETURN_IF_ERROR(add(style_.key_separator));
      RETURN_IF_ERROR(write(value));
    }
    --level_;
    RETURN_IF_ERROR(new_line());
    return add("}");
  }

  Status write_key(const Value& key) {
    from_user_ |= key.from_user();
    if (key.is(Kind::kString)) return write_string(key.text().bytes());
    if (key.is(Kind::kNone) || key.is_number()) return write_string(scalar(key));
    return type_error("tojson cannot write this key", "a string, number, bool or none", key);
  }

  Status write_string(std::string_view text) {
    RETURN_IF_ERROR(budget_.spend(text.size()));
    RETURN_IF_ERROR(budget_.check_size(out_.size() + text.size()));
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      const Character c = decode_at(text, i);
      write_character(c.code_point, text.substr(i, c.size));
      i += c.size;
    }
    out_ += '"';
    return Ok{};
  }

  void write_character(char32_t c, std::string_view bytes) {
    switch (c) {
      case '"':
        out_ += "\\\"";
        return;
      case '\\':
        out_ += "\\\\";
        return;
      case '\n':
        out_ += "\\n";
        return;
      case '\r':
        out_ += "\\r";
        return;
      case '\t':
        out_ += "\\t";
        return;
      case '\b':
        out_ += "\\b";
        return;
      case '\f':
        out_ += "\\f";
        return;
      default:
        break;
    }
    const auto code = static_cast<uint32_t>(c);
    if (code < 0x20 || (style_.ensure_ascii && code > 0x7E && code < 0x10000)) {
      out_ += fmt::format("\\u{:04x}", code);
    } else if (style_.ensure_ascii && code >= 0x10000) {
      const uint32_t offset = code - 0x10000;
      out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
    } else {
      out_ += bytes;
    }
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::string out_;
  bool from_user_ = false;
  int level_ = 0;
};

}  // namespace

Result<Text> to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  RETURN_IF_ERROR(writer.write(value));
  return writer.finish();
}

}  // namespace espalier::text::jinja
