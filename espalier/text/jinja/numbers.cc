// Numbers as Python writes and reads them (declared in represent.h).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

std::string_view strip_spaces(std::string_view text) {
  while (!text.empty() && is_space(decode_at(text, 0).code_point)) {
    text.remove_prefix(decode_at(text, 0).size);
  }
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_space(decode_at(text, last).code_point)) break;
    text.remove_suffix(text.size() - last);
  }
  return text;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// "0x", "0o", "0b" in front of digits, where the base allows it; base 0 takes its base from there.
int take_base_prefix(std::string_view& digits, int base) {
  int named = 0;
  if (digits.size() > 2 && digits[0] == '0') {
    switch (digits[1] | 0x20) {
      case 'x':
        named = 16;
        break;
      case 'o':
        named = 8;
        break;
      case 'b':
        named = 2;
        break;
      default:
        break;
    }
  }
  if (named == 0 || (base != 0 && base != named)) return base == 0 ? 10 : base;
  digits.remove_prefix(2);
  if (digits[0] == '_') digits.remove_prefix(1);
  return named;
}

// Removes the underscores that Python allows between two digits; false where one stands elsewhere.
bool without_underscores(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 36 &&
                         digit_value(text[i + 1]) < 36;
    if (!between) return false;
  }
  return true;
}

// What Python's float() reads: strtod alone would also take hexadecimal numbers and "nan(...)".
bool is_float_literal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower == "inf" || lower == "infinity" || lower == "nan") return true;
  const auto take_digits = [&text] {
    const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  size_t digits = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    digits += take_digits();
  }
  if (digits == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}e{}{:02}", shortest.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  // Fixed notation with all the digits that the shortest form has, and at least one after the
  // point.
  const size_t digits = e - (shortest[0] == '-') - (shortest.find('.') != std::string_view::npos);
  const int decimals = std::max(1, static_cast<int>(digits) - 1 - exponent);
  return fmt::format("{:.{}f}", value, decimals);
}

std::optional<Value> parse_integer(std::string_view text, int base) {
  std::string_view digits = strip_spaces(text);
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  base = take_base_prefix(digits, base);
  std::string plain;
  if (digits.empty() || !without_underscores(digits, plain)) return std::nullopt;
  int64_t value = 0;
  for (const char c : plain) {
    const int digit = digit_value(c);
    if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
        __builtin_sub_overflow(value, digit, &value)) {
      return std::nullopt;  // counted downwards, so that the lowest integer fits
    }
  }
  if (!negative && __builtin_sub_overflow(int64_t{0}, value, &value)) return std::nullopt;
  return Value::integer(value);
}

std::optional<double> parse_float(std::string_view text) {
  std::string plain;
  if (!without_underscores(strip_spaces(text), plain) || !is_float_literal(plain)) {
    return std::nullopt;
  }
  return std::strtod(plain.c_str(), nullptr);
}

std::optional<int64_t> truncate_to_integer(double value) {
  const double whole = std::trunc(value);
  if (!(whole >= -0x1p63 && whole < 0x1p63)) return std::nullopt;
  return static_cast<int64_t>(whole);
}

}  // namespace espalier::text::jinja
