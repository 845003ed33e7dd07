// "...".format(...) (declared in format.h).
#include <fmt/format.h>

#include "espalier/text/jinja/escape.h"
#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, bool markup, const Arguments& arguments)
      : machine_(machine), markup_(markup), arguments_(arguments) {}

  // Formats may stand within formats ("{:{width}}"): two levels, as in Python.
  Result<Text> run(const Text& format, int level) {
    if (level > 3)
      return bad_format("replacement fields are nested too deeply", "two levels", "more");
    const std::string& bytes = format.bytes();
    Text out;
    for (size_t i = 0; i < bytes.size();) {
      const size_t brace = std::min(bytes.find_first_of("{}", i), bytes.size());
      out.append(format.substr(i, brace));
      if (brace == bytes.size()) break;
      if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
        out.append(format.substr(brace, brace + 1));
        i = brace + 2;
        continue;
      }
      if (bytes[brace] == '}') return bad_format("a single '}' in a format", "'}}'", "'}'");
      ASSIGN_OR_RETURN(i, field(format, brace + 1, out, level));
      RETURN_IF_ERROR(machine_.budget.spend(out.size() / 16 + 16));
      RETURN_IF_ERROR(machine_.budget.check_size(out.size()));
    }
    return out;
  }

 private:
  // The field that begins at `begin`; returns the place behind its brace.
  Result<size_t> field(const Text& format, size_t begin, Text& out, int level) {
    const std::string& bytes = format.bytes();
    size_t end = begin;
    int open = 1;
    size_t name_end = std::string::npos;
    bool in_brackets = false;
    for (; end < bytes.size(); ++end) {
      const char c = bytes[end];
      if (name_end == std::string::npos && (c == '[' || c == ']')) in_brackets = c == '[';
      if (in_brackets) continue;
      if (name_end == std::string::npos && open == 1 && (c == '!' || c == ':')) name_end = end;
      open += c == '{' ? 1 : c == '}' ? -1 : 0;
      if (open == 0) break;
    }
    if (end >= bytes.size())
      return bad_format("a field in a format does not end", "'}'", "end of text");
    name_end = std::min(name_end, end);
    ASSIGN_OR_RETURN(Value value, lookup(bytes.substr(begin, name_end - begin)));
    ASSIGN_OR_RETURN(const size_t spec_begin, conversion(bytes, name_end, end, value));
    ASSIGN_OR_RETURN(const Text spec, run(format.substr(spec_begin, end), level + 1));
    ASSIGN_OR_RETURN(const Text text, insert(value, spec.bytes()));
    out.append(text);
    return end + 1;
  }

  // "!r" and ":" after the name; returns where the specification begins.
  Result<size_t> conversion(const std::string& bytes, size_t at, size_t end, Value& value) {
    if (at < end && bytes[at] == '!') {
      const char kind = at + 1 < end ? bytes[at + 1] : ' ';
      if (kind == 's') {
        ASSIGN_OR_RETURN(Text text, to_text(machine_.budget, value));
        value = Value::string(std::move(text));
      } else if (kind == 'r' || kind == 'a') {
        ASSIGN_OR_RETURN(Text text, repr(machine_.budget, value));
        value = Value::string(std::move(text));
      } else {
        return bad_format("unknown conversion in a format", "!s or !r", fmt::format("!{}", kind));
      }
      at += 2;
      if (at < end && bytes[at] != ':')
        return bad_format("text after a conversion", "':'", bytes.substr(at, 1));
    }
    return at < end ? at + 1 : end;
  }

  Result<Value> first_part(const std::string& name) {
    if (name.empty() || is_digits(name)) {
      const bool automatic = name.empty();
      if (numbering_ != Numbering::kNone && (numbering_ == Numbering::kAutomatic) != automatic) {
        return bad_format("numbered and automatic fields in one format", "one kind", "both");
      }
      numbering_ = automatic ? Numbering::kAutomatic : Numbering::kManual;
      const size_t index = automatic ? next_++ : name.size() > 6 ? SIZE_MAX : std::stoul(name);
      if (index < arguments_.positional.size()) return arguments_.positional[index];
      return bad_format("a field has no argument", fmt::format("{} arguments", index + 1),
                        fmt::format("{}", arguments_.positional.size()));
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    return bad_format("a field has no argument", fmt::format("an argument '{}'", name), "nothing");
  }

  // "name", "0.attribute", "name[key]".
  Result<Value> lookup(const std::string& path) {
    size_t end = std::min(path.find_first_of(".["), path.size());
    ASSIGN_OR_RETURN(Value value, first_part(path.substr(0, end)));
    while (end < path.size()) {
      const bool is_item = path[end] == '[';
      const size_t begin = end + 1;
      end = is_item ? path.find(']', begin) : path.find_first_of(".[", begin);
      if (is_item && end == std::string::npos)
        return bad_format("a '[' is not closed", "']'", path);
      end = std::min(end, path.size());
      const std::string key = path.substr(begin, end - begin);
      if (key.empty()) return bad_format("an empty attribute in a format", "a name", "nothing");
      const auto number = is_item && is_digits(key) ? parse_integer(key, 10) : std::nullopt;
      ASSIGN_OR_RETURN(value, !is_item
                                  ? machine_.attribute(value, key)
                                  : machine_.item(value, number.value_or(Value::literal(key))));
      if (is_item) ++end;
    }
    return value;
  }

  Result<FormatSpec> parse_spec(std::string_view text) {
    FormatSpec spec;
    const std::string_view all = text;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    bool has_fill = false;
    if (!text.empty()) {
      const size_t fill = decode_at(text, 0).size;
      if (text.size() > fill && is_align(text[fill])) {
        spec.fill = decode_at(text, 0).code_point;
        text.remove_prefix(fill);
        has_fill = true;
      }
    }
    const auto take = [&](std::string_view set) -> char {
      if (text.empty() || set.find(text[0]) == std::string_view::npos) return 0;
      const char c = text[0];
      text.remove_prefix(1);
      return c;
    };
    const auto number = [&]() -> std::optional<int64_t> {
      const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
      if (end == 0) return std::nullopt;
      const int64_t value =
          end > 12 ? int64_t{1} << 40 : std::stoll(std::string(text.substr(0, end)));
      text.remove_prefix(end);
      return value;
    };
    spec.align = take("<>^=");
    if (const char sign = take("+- "); sign != 0) spec.sign = sign;
    spec.alternate = take("#") != 0;
    if (take("0") != 0) {
      if (!has_fill) spec.fill = U'0';
      if (spec.align == 0) spec.align = '0';  // as '=', for numbers
    }
    spec.width = number().value_or(0);
    spec.grouping = take(",_");
    if (take(".") != 0) {
      spec.precision = number();
      if (!spec.precision.has_value())
        return bad_format("a format has no precision", "digits", std::string(all));
    }
    spec.type = take("bcdeEfFgGnosxX%");
    if (!text.empty())
      return bad_format("an invalid format", "[[fill]align][sign][0][width][,][.precision][type]",
                        std::string(all));
    return spec;
  }

  Result<Text> insert(const Value& original, const std::string& spec_text) {
    Value value = original;
    if (markup_) {
      ASSIGN_OR_RETURN(value, to_markup(machine_.budget, value));
    }
    if (spec_text.empty()) return to_text(machine_.budget, value);
    ASSIGN_OR_RETURN(FormatSpec spec, parse_spec(spec_text));
    if (value.is(Kind::kInt) || value.is(Kind::kFloat) || value.is(Kind::kBool)) {
      return insert_number(value, spec);
    }
    const bool numeric_only =
        spec.align == '=' || spec.sign != 0 || spec.alternate || spec.grouping != 0;
    if (!value.is(Kind::kString) || (spec.type != 0 && spec.type != 's') || numeric_only) {
      return type_error("this format does not fit the value", "a number for a number's format",
                        value);
    }
    if (spec.align == '0') spec.align = '<';
    Text text = value.text();
    if (spec.precision.has_value()) {
      text = text.substr(0, byte_offset(text.bytes(), static_cast<size_t>(*spec.precision)));
    }
    return pad_formatted(machine_.budget, text, spec, '<');
  }

  Result<Text> insert_number(const Value& value, FormatSpec spec) {
    if (spec.align == '0') spec.align = '=';
    if (spec.type == 's') return type_error("the format 's' wants a string", "str", value);
    const bool integer_type =
        spec.type != 0 && std::string_view("bcdoxX").find(spec.type) != std::string_view::npos;
    if (integer_type && value.is(Kind::kFloat)) {
      return type_error("an integer format wants an integer", "int", value);
    }
    if (spec.type == 'c') {
      const int64_t code = value.integer();
      if (!is_character(code)) {
        return bad_format("the format 'c' wants a character", "0 to 0x10ffff",
                          fmt::format("{}", code));
      }
      std::string bytes;
      append_utf8(bytes, static_cast<char32_t>(code));
      return pad_formatted(machine_.budget, Text(bytes, value.from_user()), spec, '<');
    }
    const bool in_other_base = integer_type && spec.type != 'd' && spec.type != 'c';
    if (spec.grouping == ',' && in_other_base) {
      return bad_format("',' does not group these digits", "'_'", "','");
    }
    if (value.is_integral() && (spec.type == 0 || integer_type) && spec.precision.has_value()) {
      return bad_format("an integer format has a precision", "none", "one");
    }
    if (value.is(Kind::kBool) && spec.type == 0 && spec.precision == std::nullopt) spec.type = 'd';
    return format_number(machine_.budget, value, spec);
  }

  enum class Numbering { kNone, kAutomatic, kManual };
  Machine& machine_;
  const bool markup_;
  const Arguments& arguments_;
  Numbering numbering_ = Numbering::kNone;
  size_t next_ = 0;
};

}  // namespace

Result<Value> brace_format(Machine& machine, const Value& format, const Arguments& arguments) {
  ASSIGN_OR_RETURN(Text text,
                   BraceFormatter(machine, format.is_markup(), arguments).run(format.text(), 1));
  return Value::string(std::move(text), format.is_markup());
}

}  // namespace espalier::text::jinja
