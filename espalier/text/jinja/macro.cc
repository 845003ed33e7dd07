#include "espalier/text/jinja/macro.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::text::jinja {

std::string MacroFunction::repr() const {
  if (macro_.name.empty()) return "<Macro anonymous>";
  return fmt::format("<Macro '{}'>", macro_.name);
}

Result<std::optional<Value>> MacroFunction::attribute(Machine&, std::string_view name) {
  const auto found = [](Value value) { return std::optional<Value>(std::move(value)); };
  if (name == "name") return found(macro_.name.empty() ? Value() : Value::literal(macro_.name));
  if (name == "catch_kwargs") return found(Value::boolean(macro_.uses_kwargs));
  if (name == "catch_varargs") return found(Value::boolean(macro_.uses_varargs));
  if (name == "caller") return found(Value::boolean(macro_.uses_caller));
  if (name != "arguments") return std::optional<Value>();
  Values names;
  for (const Parameter& parameter : macro_.parameters)
    names.push_back(Value::literal(parameter.name));
  return found(Value::tuple(std::move(names)));
}

Error MacroFunction::takes_no(std::string actual) const {
  std::string names;
  for (const Parameter& parameter : macro_.parameters)
    names += (names.empty() ? "" : ", ") + parameter.name;
  return Error{.what = fmt::format("wrong arguments for the macro '{}'", macro_.name),
               .expected = fmt::format("({})", names),
               .actual = std::move(actual),
               .fix = "Correct the call."};
}

Result<std::vector<std::optional<Value>>> MacroFunction::match(const Arguments& arguments,
                                                               Scope& scope) const {
  const auto& parameters = macro_.parameters;
  std::vector<std::optional<Value>> values(parameters.size());
  const size_t given = std::min(arguments.positional.size(), parameters.size());
  for (size_t i = 0; i < given; ++i) values[i] = arguments.positional[i];
  std::optional<Value> caller;
  auto kwargs = std::make_shared<Dict>();
  bool explicit_caller = false;
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find_if(
        parameters.begin(), parameters.end(),
        [&wanted = name](const Parameter& parameter) { return parameter.name == wanted; });
    const auto index = static_cast<size_t>(found - parameters.begin());
    if (found != parameters.end() && index >= given) {
      values[index] = value;
    } else if (name == "caller" && macro_.uses_caller && found == parameters.end()) {
      caller = value;
    } else if (macro_.uses_kwargs) {
      kwargs->set_name(name, false, value);
    } else {
      return takes_no(fmt::format("the argument '{}'", name));
    }
  }
  for (const Parameter& parameter : parameters) explicit_caller |= parameter.name == "caller";
  if (macro_.uses_caller && !explicit_caller) {
    scope.set("caller", caller.value_or(Value::undefined("No caller defined")));
  }
  if (macro_.uses_kwargs) scope.set("kwargs", Value::dict(std::move(kwargs)));
  const Values rest(arguments.positional.begin() + static_cast<int64_t>(given),
                    arguments.positional.end());
  if (!macro_.uses_varargs && !rest.empty()) {
    return takes_no(fmt::format("{} positional ones", arguments.positional.size()));
  }
  if (macro_.uses_varargs) scope.set("varargs", Value::tuple(rest));
  return values;
}

Result<Value> MacroFunction::call(Machine&, const Arguments& arguments) {
  const std::shared_ptr<Scope> scope = interpreter_.enter(macro_.body, scope_);
  ASSIGN_OR_RETURN(const auto values, match(arguments, *scope));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].has_value())
      scope->set(macro_.parameters[i].name, *values[i]);
    else
      scope->declare(macro_.parameters[i].name);
  }
  // Defaults are evaluated here, one after another, so that a later one sees the earlier
  // parameters.
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].has_value()) continue;
    const Parameter& parameter = macro_.parameters[i];
    Value value = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    if (parameter.fallback != nullptr) {
      ASSIGN_OR_RETURN(value, interpreter_.evaluate(*parameter.fallback, scope));
    }
    scope->set(parameter.name, std::move(value));
  }
  ASSIGN_OR_RETURN(Text text, interpreter_.render_body(macro_.body, scope));
  return Value::string(std::move(text));
}

}  // namespace espalier::text::jinja
