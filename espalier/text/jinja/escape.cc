#include "espalier/text/jinja/escape.h"

#include "espalier/text/jinja/represent.h"

namespace espalier::text::jinja {

Text escape_html(const Text& text) {
  Text escaped;
  text.for_each_run([&](std::string_view run, bool from_user) {
    size_t begin = 0;
    for (size_t i = 0; i < run.size(); ++i) {
      std::string_view entity;
      switch (run[i]) {
        case '&':
          entity = "&amp;";
          break;
        case '<':
          entity = "&lt;";
          break;
        case '>':
          entity = "&gt;";
          break;
        case '\'':
          entity = "&#39;";
          break;
        case '"':
          entity = "&#34;";
          break;
        default:
          continue;
      }
      escaped.append(run.substr(begin, i - begin), from_user);
      escaped.append(entity, from_user);
      begin = i + 1;
    }
    escaped.append(run.substr(begin), from_user);
  });
  return escaped;
}

Result<Value> to_markup(Budget& budget, const Value& value) {
  if (value.is_markup()) return value;
  ASSIGN_OR_RETURN(const Text text, to_text(budget, value));
  RETURN_IF_ERROR(budget.spend(text.size(), 6));
  return Value::string(escape_html(text), true);
}

}  // namespace espalier::text::jinja
