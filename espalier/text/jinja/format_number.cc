// Numbers in Python's format language (declared in format.h).
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja {
namespace {

constexpr int64_t kPrecisionLimit = 1000;

std::string in_base(uint64_t value, char type) {
  switch (type) {
    case 'x':
      return fmt::format("{:x}", value);
    case 'X':
      return fmt::format("{:X}", value);
    case 'o':
      return fmt::format("{:o}", value);
    case 'b':
      return fmt::format("{:b}", value);
    default:
      return fmt::format("{}", value);
  }
}

std::string base_prefix(const FormatSpec& spec) {
  if (!spec.alternate) return "";
  switch (spec.type) {
    case 'x':
      return "0x";
    case 'X':
      return "0X";
    case 'o':
      return "0o";
    case 'b':
      return "0b";
    default:
      return "";
  }
}

// Digits of the absolute value in e, f, g or % notation. `#` keeps the point.
std::string float_digits(double magnitude, const FormatSpec& spec) {
  const int precision = static_cast<int>(spec.precision.value_or(6));
  if (spec.type != 0) {
    const bool percent = spec.type == '%';
    const char type = percent ? 'f' : spec.type == 'n' ? 'g' : spec.type;
    const std::string pattern = fmt::format("%{}.*{}", spec.alternate ? "#" : "", type);
    char buffer[kPrecisionLimit + 400];  // a double has up to 309 digits before the point
    const int length = std::snprintf(buffer, sizeof buffer, pattern.c_str(), precision,
                                     percent ? magnitude * 100 : magnitude);
    std::string digits(buffer, static_cast<size_t>(length));
    if (percent) digits += '%';
    return digits;
  }
  if (!spec.precision.has_value()) return float_repr(magnitude);
  // Without a type: like g, but with a digit after the point.
  std::string digits = fmt::format("{:.{}g}", magnitude, std::max(precision, 1));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

std::string with_grouping(const std::string& digits, char separator, size_t group) {
  const size_t end = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  std::string out;
  for (size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % group == 0) out += separator;
    out += digits[i];
  }
  return out + digits.substr(end);
}

bool is_float_type(char type) {
  return type != 0 && std::string_view("eEfFgGn%").find(type) != std::string_view::npos;
}

}  // namespace

Error bad_format(std::string what, std::string expected, std::string actual) {
  return Error{.what = std::move(what),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Correct the format."};
}

Text fill_text(const FormatSpec& spec) {
  std::string bytes;
  append_utf8(bytes, spec.fill);
  return Text(bytes, false);
}

Result<Text> format_number(Budget& budget, const Value& value, const FormatSpec& spec) {
  if (spec.precision.value_or(0) > kPrecisionLimit) {
    return Error{.what = "a format asks for too many digits",
                 .expected = fmt::format("at most {}", kPrecisionLimit),
                 .actual = fmt::format("{}", *spec.precision),
                 .fix = "Correct the format."};
  }
  const bool as_float = value.is(Kind::kFloat) || is_float_type(spec.type);
  const double real = value.number();
  const bool negative = as_float ? std::signbit(real) : value.integer() < 0;
  std::string digits;
  if (!as_float) {
    const auto bits = static_cast<uint64_t>(value.integer());
    digits = in_base(negative ? 0 - bits : bits, spec.type);
  } else if (!std::isfinite(real)) {
    const bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
    digits = std::isnan(real) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
    if (spec.type == '%') digits += '%';
  } else {
    digits = float_digits(std::fabs(real), spec);
  }
  if (spec.grouping != 0) {
    const bool thousands = as_float || spec.type == 'd' || spec.type == 0;
    digits = with_grouping(digits, spec.grouping, thousands ? 3 : 4);
  }
  std::string sign;
  if (negative && !std::isnan(real)) {
    sign = '-';
  } else if (spec.sign == '+' || spec.sign == ' ') {
    sign = spec.sign;
  }
  if (!as_float) sign += base_prefix(spec);
  const bool from_user = value.from_user();
  if (spec.align != '=') return pad_formatted(budget, Text(sign + digits, from_user), spec, '>');
  // Padding goes between the sign and the digits.
  const int64_t width = spec.width - static_cast<int64_t>(sign.size());
  ASSIGN_OR_RETURN(const Text padded,
                   pad(budget, Text(digits, from_user), width, fill_text(spec), Side::kLeft));
  Text result(sign, from_user);
  result.append(padded);
  return result;
}

Result<Text> pad_formatted(Budget& budget, const Text& text, const FormatSpec& spec,
                           char default_align) {
  const char align = spec.align != 0 ? spec.align : default_align;
  if (align == '^') {
    // format() centres with the odd one to the right, unlike str.center().
    const auto length = static_cast<int64_t>(code_point_count(text.bytes()));
    const int64_t left = std::max<int64_t>(0, (spec.width - length) / 2);
    ASSIGN_OR_RETURN(const Text shifted,
                     pad(budget, text, length + left, fill_text(spec), Side::kLeft));
    return pad(budget, shifted, spec.width, fill_text(spec), Side::kRight);
  }
  return pad(budget, text, spec.width, fill_text(spec), align == '<' ? Side::kRight : Side::kLeft);
}

}  // namespace espalier::text::jinja
