// MacroFunction: a macro, or the body of a call block, as a value that can be called.
#pragma once

#include "espalier/text/jinja/interpreter.h"

namespace espalier::text::jinja {

class MacroFunction : public Native, public CycleBreaker {
 public:
  // The tree and the interpreter outlive every value of a rendering.
  MacroFunction(const Macro& macro, Interpreter& interpreter, std::shared_ptr<Scope> scope)
      : macro_(macro), interpreter_(interpreter), scope_(std::move(scope)) {}

  std::string repr() const override;
  std::string_view type_name() const override { return "Macro"; }
  Result<std::optional<Value>> attribute(Machine& machine, std::string_view name) override;
  bool callable() const override { return true; }
  Result<Value> call(Machine& machine, const Arguments& arguments) override;
  void drop_references() override { scope_.reset(); }

 private:
  // Where a parameter's value comes from; nothing where it was left out.
  Result<std::vector<std::optional<Value>>> match(const Arguments& arguments, Scope& scope) const;
  Error takes_no(std::string actual) const;

  const Macro& macro_;
  Interpreter& interpreter_;
  std::shared_ptr<Scope> scope_;
};

}  // namespace espalier::text::jinja
