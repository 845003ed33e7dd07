#include "espalier/text/jinja/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

bool is_digit_of(char c, int base) {
  if (base == 16 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')) return true;
  return c >= '0' && c < '0' + std::min(base, 10);
}

// End of a run of digits in which single underscores may separate two digits.
size_t digits_end(std::string_view source, size_t from, int base) {
  size_t i = from;
  while (i < source.size()) {
    if (is_digit_of(source[i], base)) {
      ++i;
    } else if (source[i] == '_' && i > from && i + 1 < source.size() &&
               is_digit_of(source[i + 1], base)) {
      i += 2;
    } else {
      break;
    }
  }
  return i;
}

// End of a float literal at `offset`, or `offset` where there is none.
size_t float_end(std::string_view source, size_t offset) {
  size_t end = digits_end(source, offset, 10);
  bool is_float = false;
  if (end + 1 < source.size() && source[end] == '.' && is_digit_of(source[end + 1], 10)) {
    end = digits_end(source, end + 1, 10);
    is_float = true;
  }
  if (end < source.size() && (source[end] | 0x20) == 'e') {
    size_t exponent = end + 1;
    if (exponent < source.size() && (source[exponent] == '+' || source[exponent] == '-'))
      ++exponent;
    if (exponent < source.size() && is_digit_of(source[exponent], 10)) {
      end = digits_end(source, exponent, 10);
      is_float = true;
    }
  }
  return is_float ? end : offset;
}

size_t integer_end(std::string_view source, size_t offset) {
  if (source[offset] == '0' && offset + 2 < source.size()) {
    const char letter = static_cast<char>(source[offset + 1] | 0x20);
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    const size_t first = offset + 2 + (source[offset + 2] == '_' ? 1 : 0);
    if (base != 0 && first < source.size() && is_digit_of(source[first], base)) {
      return digits_end(source, first, base);
    }
  }
  // A decimal literal does not begin with 0 unless it is all zeros: "007" is read as "00" and "7".
  return digits_end(source, offset, source[offset] == '0' ? 1 : 10);
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

class Unescaper {
 public:
  Unescaper(std::string_view source, Offset begin, Offset end)
      : source_(source), position_(begin), end_(end) {}

  Result<std::string> run() {
    while (position_ < end_) {
      if (source_[position_] != '\\') {
        out_ += source_[position_++];
      } else {
        RETURN_IF_ERROR(escape());
      }
    }
    return std::move(out_);
  }

 private:
  Status escape() {
    static constexpr std::string_view kNames = "\\'\"abfnrtv";
    static constexpr std::string_view kValues = "\\'\"\a\b\f\n\r\t\v";
    const char c = source_[position_ + 1];
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      out_ += kValues[i];
      position_ += 2;
      return Ok{};
    }
    if (c == '\n') return position_ += 2, Ok{};
    if (c >= '0' && c <= '7') return octal();
    if (c == 'x') return hexadecimal(2);
    if (c == 'u') return hexadecimal(4);
    if (c == 'U') return hexadecimal(8);
    if (c == 'N') return fail("\\N{...} is not supported");
    out_ += '\\';
    ++position_;
    if (static_cast<unsigned char>(c) >= 0x80) spell_out();
    return Ok{};
  }

  // jinja2 turns other than ASCII characters into escapes first, so behind a backslash their
  // spelling shows.
  void spell_out() {
    const Character c = decode_at(source_, position_);
    const auto code = static_cast<uint32_t>(c.code_point);
    if (code < 0x100)
      out_ += fmt::format("x{:02x}", code);
    else if (code < 0x10000)
      out_ += fmt::format("u{:04x}", code);
    else
      out_ += fmt::format("U{:08x}", code);
    position_ += c.size;
  }

  Status octal() {
    uint32_t code = 0;
    ++position_;
    for (int i = 0; i < 3 && position_ < end_ && is_digit_of(source_[position_], 8); ++i) {
      code = code * 8 + static_cast<uint32_t>(source_[position_++] - '0');
    }
    append_utf8(out_, code);
    return Ok{};
  }

  Status hexadecimal(size_t digits) {
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const size_t at = position_ + 2 + i;
      const int digit = at < end_ ? hex_value(source_[at]) : -1;
      if (digit < 0) return fail("a truncated escape in a string");
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (!is_character(code)) {
      return fail("an escape in a string is not a character");
    }
    append_utf8(out_, code);
    position_ += 2 + digits;
    return Ok{};
  }

  Error fail(std::string what) const {
    const size_t length = std::min<size_t>(10, end_ - position_);
    return syntax_error(source_, Offset(position_), std::move(what),
                        "an escape such as \\n, \\x41 or \\u00e9",
                        std::string(source_.substr(position_, length)));
  }

  std::string_view source_;
  size_t position_, end_;
  std::string out_;
};

}  // namespace

Result<NumberLiteral> scan_number(std::string_view source, Offset offset, bool may_be_float) {
  NumberLiteral literal;
  size_t end = may_be_float ? float_end(source, offset) : offset;
  literal.is_float = end > offset;
  if (!literal.is_float) end = integer_end(source, offset);
  literal.length = end - offset;
  std::string digits(source.substr(offset, literal.length));
  std::erase(digits, '_');
  if (literal.is_float) {
    literal.real = std::strtod(digits.c_str(), nullptr);
    return literal;
  }
  const std::optional<Value> value = parse_integer(digits, digits[0] == '0' ? 0 : 10);
  if (!value.has_value()) {
    return syntax_error(source, offset, "a number is too large", "at most 2^63 - 1", digits);
  }
  literal.integer = value->integer();
  return literal;
}

Result<std::string> unescape_string(std::string_view source, Offset begin, Offset end) {
  return Unescaper(source, begin, end).run();
}

}  // namespace espalier::text::jinja
