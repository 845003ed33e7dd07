// The functions every template may call: range, dict, namespace, cycler and joiner of jinja2,
// raise_exception and strftime_now of transformers. Built once; safe to share between renderings
// and threads.
#pragma once

#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

void add_builtin_globals(Dict& globals);

}  // namespace espalier::text::jinja
