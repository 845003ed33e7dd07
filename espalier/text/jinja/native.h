// Native: an object of the template language that is written in C++: functions, bound methods,
// macros, loops. It may have attributes and may be callable. Also the shape in which arguments
// travel.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

class Machine;

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Native : public Object {
 public:
  virtual std::string repr() const = 0;
  virtual std::string_view type_name() const = 0;
  virtual Result<std::optional<Value>> attribute(Machine& machine, std::string_view name);
  virtual bool callable() const { return false; }
  virtual Result<Value> call(Machine& machine, const Arguments& arguments);
  virtual std::optional<int64_t> length() const { return std::nullopt; }
};

class Function : public Native {
 public:
  using Body = std::function<Result<Value>(Machine&, const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string repr() const override { return fmt::format("<function {}>", name_); }
  std::string_view type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Result<Value> call(Machine& machine, const Arguments& arguments) override {
    return body_(machine, arguments);
  }

 private:
  std::string name_;
  Body body_;
};

Value make_function(std::string name, Function::Body body, int depth = 0);

}  // namespace espalier::text::jinja
