// Binding: arguments of a call matched with the parameters of a C++ function. A parameter list is
// written as "old new count?": names in order, "?" for optional ones, "_name" for positional only,
// a last "*" for any further positional and "**" for any further named arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "espalier/text/jinja/native.h"

namespace espalier::text::jinja {

// Refers to the Arguments it was made from.
class Bound {
 public:
  static Result<Bound> bind(std::string_view callee, std::string_view parameters,
                            const Arguments& arguments);

  bool has(size_t index) const { return slots_[index] != nullptr; }
  // The argument, or `fallback` where it was left out.
  const Value& value(size_t index, const Value& fallback = none()) const {
    return has(index) ? *slots_[index] : fallback;
  }
  const Values& rest() const { return rest_; }
  const std::vector<std::pair<std::string, Value>>& named_rest() const { return named_rest_; }

  // Typed; left out or none gives the fallback where there is one.
  Result<int64_t> integer(size_t index) const;
  Result<int64_t> integer_or(size_t index, int64_t fallback) const;
  Result<Text> text(size_t index) const;
  bool truth_or(size_t index, bool fallback) const {
    return has(index) ? is_true(*slots_[index]) : fallback;
  }

 private:
  static const Value& none();
  Status bind_named(const Arguments& arguments, const std::vector<std::string_view>& names,
                    bool takes_more, std::string_view callee);
  std::vector<const Value*> slots_;
  Values rest_;
  std::vector<std::pair<std::string, Value>> named_rest_;
};

}  // namespace espalier::text::jinja
