// HTML escaping, for the filters `escape` and `safe` and for what is joined with their results.
// Pure.
#pragma once

#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

Text escape_html(const Text& text);
// jinja2's Markup: escaped text as it is, other text escaped, other values printed and escaped.
Result<Value> to_markup(Budget& budget, const Value& value);

}  // namespace espalier::text::jinja
