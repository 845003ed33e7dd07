// Parser: template source to tree. Errors name line and column. Nesting is limited, so that a
// hostile template cannot exhaust the stack here, in the interpreter or when the tree is destroyed.
// Pure.
#pragma once

#include <string>

#include "espalier/text/jinja/ast.h"

namespace espalier::text::jinja {

Result<TemplateTree> parse_template(const std::string& source);

}  // namespace espalier::text::jinja
