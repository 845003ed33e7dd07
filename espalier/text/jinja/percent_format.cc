// "..." % values (declared in format.h).
#include <fmt/format.h>

#include "espalier/text/jinja/escape.h"
#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Machine& machine, const Value& format, const Value& values)
      : machine_(machine), format_(format.text()), markup_(format.is_markup()), values_(values) {}

  Result<Text> run() {
    const std::string& bytes = format_.bytes();
    while (position_ < bytes.size()) {
      const size_t percent = std::min(bytes.find('%', position_), bytes.size());
      RETURN_IF_ERROR(add(format_.substr(position_, percent)));
      if (percent == bytes.size()) break;
      position_ = percent + 1;
      ASSIGN_OR_RETURN(const Text inserted, directive());
      RETURN_IF_ERROR(add(inserted));
    }
    const bool is_mapping = values_.is(Kind::kDict) || values_.is(Kind::kUndefined) ||
                            values_.is(Kind::kList) || values_.is(Kind::kRange);
    const size_t given = values_.is(Kind::kTuple) ? values_.items().size() : is_mapping ? 0 : 1;
    if (used_ < given) {
      return bad_format("not all arguments were used by the format",
                        fmt::format("{} values", used_), fmt::format("{}", given));
    }
    return std::move(out_);
  }

 private:
  Status add(const Text& text) {
    RETURN_IF_ERROR(machine_.budget.spend(text.size() + 16));
    RETURN_IF_ERROR(machine_.budget.check_size(out_.size() + text.size()));
    out_.append(text);
    return Ok{};
  }
  char peek() const { return position_ < format_.size() ? format_.bytes()[position_] : '\0'; }

  Result<Value> next_value() {
    if (values_.is(Kind::kTuple)) {
      if (used_ < values_.items().size()) return values_.items()[used_++];
    } else if (used_ == 0) {
      ++used_;
      return values_;
    }
    return bad_format("not enough arguments for the format", "one value for each directive",
                      fmt::format("{}", used_));
  }

  // "*" or digits.
  Result<int64_t> count() {
    if (peek() == '*') {
      ++position_;
      ASSIGN_OR_RETURN(const Value value, next_value());
      if (!value.is_integral()) return type_error("'*' in a format wants an integer", "int", value);
      return value.integer();
    }
    int64_t number = 0;
    while (peek() >= '0' && peek() <= '9') {
      number = std::min<int64_t>(number * 10 + (peek() - '0'), int64_t{1} << 40);
      ++position_;
    }
    return number;
  }

  Result<std::optional<Value>> key() {
    if (peek() != '(') return std::optional<Value>();
    const std::string& bytes = format_.bytes();
    int open = 0;
    size_t end = position_;
    do {
      if (end >= bytes.size())
        return bad_format("a key in a format does not end", ")", "end of text");
      open += bytes[end] == '(' ? 1 : bytes[end] == ')' ? -1 : 0;
      ++end;
    } while (open > 0);
    const std::string name = bytes.substr(position_ + 1, end - position_ - 2);
    position_ = end;
    if (!values_.is(Kind::kDict))
      return type_error("a format with keys wants a dict", "dict", values_);
    const Value* value = values_.dict().find_name(name);
    if (value == nullptr) return bad_format("a key of the format is missing", name, "nothing");
    return std::optional<Value>(*value);
  }

  void flags(FormatSpec& spec) {
    for (;; ++position_) {
      switch (peek()) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          spec.sign = spec.sign == '+' ? '+' : ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          spec.fill = U'0';
          break;
        default:
          return;
      }
    }
  }

  Result<Text> directive() {
    if (peek() == '%') return Text("%", format_.from_user(position_++));
    FormatSpec spec;
    ASSIGN_OR_RETURN(std::optional<Value> value, key());
    flags(spec);
    ASSIGN_OR_RETURN(spec.width, count());
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (peek() == '.') {
      ++position_;
      ASSIGN_OR_RETURN(spec.precision, count());
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++position_;
    spec.type = peek();
    if (position_++ >= format_.size())
      return bad_format("incomplete format", "a type", "end of text");
    if (!value.has_value()) {
      ASSIGN_OR_RETURN(value, next_value());
    }
    return convert(*value, spec);
  }

  Result<Text> convert(const Value& value, FormatSpec& spec) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a':
        return convert_text(value, spec);
      case 'c':
        return convert_character(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return convert_integer(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number())
          return type_error("a float format wants a number", "a number", value);
        return padded_number(value, spec);
      default:
        break;
    }
    return bad_format("unknown type in a format", "one of s r d i u f e g x o c",
                      fmt::format("'{}'", spec.type));
  }

  Result<Text> convert_text(const Value& value, FormatSpec& spec) {
    Text text;
    if (markup_) {
      ASSIGN_OR_RETURN(const Value escaped, to_markup(machine_.budget, value));
      text = escaped.text();
    } else if (spec.type == 's') {
      ASSIGN_OR_RETURN(text, to_text(machine_.budget, value));
    } else {
      ASSIGN_OR_RETURN(text, repr(machine_.budget, value));
    }
    if (spec.precision.has_value()) {
      text = text.substr(0, byte_offset(text.bytes(), static_cast<size_t>(*spec.precision)));
    }
    spec.fill = U' ';
    return pad_formatted(machine_.budget, text, spec, '>');
  }

  Result<Text> convert_character(const Value& value, FormatSpec& spec) {
    spec.fill = U' ';
    Text text;
    if (value.is_integral()) {
      const int64_t code = value.integer();
      if (!is_character(code)) {
        return bad_format("%c wants a character", "0 to 0x10ffff", fmt::format("{}", code));
      }
      std::string bytes;
      append_utf8(bytes, static_cast<char32_t>(code));
      text = Text(bytes, value.from_user());
    } else if (value.is(Kind::kString) && code_point_count(value.text().bytes()) == 1) {
      text = value.text();
    } else {
      return type_error("%c wants one character", "int or a string of one character", value);
    }
    return pad_formatted(machine_.budget, text, spec, '>');
  }

  Result<Text> convert_integer(const Value& value, FormatSpec& spec) {
    Value integer = value;
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (value.is(Kind::kFloat) && decimal) {
      const auto whole = truncate_to_integer(value.number());
      if (!whole.has_value())
        return bad_format("a float has no integer", "64 bits", float_repr(value.number()));
      integer = Value::integer(*whole, value.from_user());
    } else if (!value.is_integral()) {
      return type_error("an integer format wants a number", "int", value);
    }
    if (decimal) spec.type = 'd';
    if (spec.precision.has_value()) return with_precision(integer, spec);
    return padded_number(integer, spec);
  }

  // "%.3d": at least so many digits.
  Result<Text> with_precision(const Value& value, const FormatSpec& spec) {
    FormatSpec plain = spec;
    plain.width = 0;
    plain.align = 0;
    plain.precision.reset();
    ASSIGN_OR_RETURN(const Text digits, format_number(machine_.budget, value, plain));
    size_t prefix = digits.bytes().find_first_not_of("+- ");
    if (spec.alternate && spec.type != 'd') prefix += 2;  // "0x"
    const bool zeros = spec.fill == U'0' && spec.align != '<';
    const int64_t count =
        std::max(*spec.precision, zeros ? spec.width - static_cast<int64_t>(prefix) : 0);
    ASSIGN_OR_RETURN(const Text filled, pad(machine_.budget, digits.substr(prefix, digits.size()),
                                            count, Text("0", false), Side::kLeft));
    Text signed_digits = digits.substr(0, prefix);
    signed_digits.append(filled);
    FormatSpec outer = spec;
    outer.fill = U' ';
    return pad_formatted(machine_.budget, signed_digits, outer, '>');
  }

  Result<Text> padded_number(const Value& value, FormatSpec& spec) {
    if (spec.fill == U'0') {
      if (spec.align == '<')
        spec.fill = U' ';
      else
        spec.align = '=';
    }
    return format_number(machine_.budget, value, spec);
  }

  Machine& machine_;
  const Text& format_;
  const bool markup_;
  const Value& values_;
  size_t position_ = 0;
  size_t used_ = 0;
  Text out_;
};

}  // namespace

Result<Value> percent_format(Machine& machine, const Value& format, const Value& values) {
  ASSIGN_OR_RETURN(Text text, PercentFormatter(machine, format, values).run());
  return Value::string(std::move(text), format.is_markup());
}

}  // namespace espalier::text::jinja
