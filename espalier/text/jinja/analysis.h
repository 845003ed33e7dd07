// Analysis: what jinja2 decides before it runs a template. Finds the names that begin as undefined
// in a scope because the template assigns them there before it reads them, and refuses unknown
// filters and tests, misplaced break and continue, and assignments to `loop`. Completes the tree in
// place.
#pragma once

#include "espalier/text/jinja/ast.h"

namespace espalier::text::jinja {

Status analyze(TemplateTree& tree);

}  // namespace espalier::text::jinja
