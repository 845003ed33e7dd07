#include "espalier/text/jinja/loop.h"

#include <fmt/format.h>

namespace espalier::text::jinja {

std::string LoopContext::repr() const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, items_.size());
}

void LoopContext::drop_references() {
  items_.clear();
  recurse_ = nullptr;
  last_changed_.reset();
}

Result<std::optional<Value>> LoopContext::attribute(Machine&, std::string_view name) {
  const auto index = static_cast<int64_t>(index_);
  const auto count = static_cast<int64_t>(items_.size());
  const auto found = [](Value value) { return std::optional<Value>(std::move(value)); };
  if (name == "index") return found(Value::integer(index + 1));
  if (name == "index0") return found(Value::integer(index));
  if (name == "revindex") return found(Value::integer(count - index));
  if (name == "revindex0") return found(Value::integer(count - index - 1));
  if (name == "first") return found(Value::boolean(index == 0));
  if (name == "last") return found(Value::boolean(index + 1 == count));
  if (name == "length") return found(Value::integer(count));
  if (name == "depth") return found(Value::integer(level_ + 1));
  if (name == "depth0") return found(Value::integer(level_));
  if (name == "previtem") {
    return found(index > 0 ? items_[index_ - 1] : Value::undefined("there is no previous item"));
  }
  if (name == "nextitem") {
    return found(index + 1 < count ? items_[index_ + 1]
                                   : Value::undefined("there is no next item"));
  }
  const auto self = shared_from_this();
  if (name == "cycle") {
    return found(make_function(
        "cycle", [self](Machine&, const Arguments& arguments) { return self->cycle(arguments); },
        depth + 1));
  }
  if (name == "changed") {
    return found(make_function(
        "changed",
        [self](Machine& machine, const Arguments& arguments) {
          return self->changed(machine, arguments);
        },
        depth + 1));
  }
  return std::optional<Value>();
}

Result<Value> LoopContext::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty() || !arguments.named.empty()) {
    return Error{.what = "loop.cycle has nothing to cycle through",
                 .expected = "values",
                 .actual = "none",
                 .fix = "Correct the call."};
  }
  return arguments.positional[index_ % arguments.positional.size()];
}

Result<Value> LoopContext::changed(Machine& machine, const Arguments& arguments) {
  const Value now = Value::tuple(arguments.positional);
  if (last_changed_.has_value()) {
    ASSIGN_OR_RETURN(const bool same, equal(machine.budget, *last_changed_, now));
    if (same) return Value::boolean(false);
  }
  if (!last_changed_.has_value()) machine.own(shared_from_this());  // it may be asked about itself
  last_changed_ = now;
  return Value::boolean(true);
}

Result<Value> LoopContext::call(Machine&, const Arguments& arguments) {
  if (recurse_ == nullptr) {
    return Error{.what = "this loop cannot call itself",
                 .expected = "'recursive' in its for tag",
                 .actual = "nothing",
                 .fix = "Add the word 'recursive' at its end."};
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return Error{.what = "a recursive loop takes what it shall go over",
                 .expected = "one argument",
                 .actual = "another number",
                 .fix = "Correct the call."};
  }
  const Recurse recurse = recurse_;  // it may outlive this object's references
  return recurse(arguments.positional[0], level_ + 1);
}

}  // namespace espalier::text::jinja
