// Python's two ways to format text: "%s of %d" % values, and "{} of {name}".format(...). Text in
// the format keeps its mark, each inserted value brings its own.
#pragma once

#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

Result<Value> percent_format(Machine& machine, const Value& format, const Value& values);
Result<Value> brace_format(Machine& machine, const Value& format, const Arguments& arguments);

// One directive, after its value was chosen.
struct FormatSpec {
  char32_t fill = U' ';
  char align = 0;  // '<', '>', '^', '=' or 0 for the type's own
  char sign = 0;   // '+', ' ' or '-'; 0 is '-' left out
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;  // ',' or '_'
  std::optional<int64_t> precision;
  char type = 0;
};
Error bad_format(std::string what, std::string expected, std::string actual);
Text fill_text(const FormatSpec& spec);  // one character of the template
// The number or text in the spec's type and precision, padded to its width.
Result<Text> format_number(Budget& budget, const Value& value, const FormatSpec& spec);
Result<Text> pad_formatted(Budget& budget, const Text& text, const FormatSpec& spec,
                           char default_align);

}  // namespace espalier::text::jinja
