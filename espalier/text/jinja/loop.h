// LoopContext: the `loop` variable of a for block. A native object; lives as long as a template
// refers to it.
#pragma once

#include <functional>

#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

class LoopContext : public Native,
                    public CycleBreaker,
                    public std::enable_shared_from_this<LoopContext> {
 public:
  using Recurse = std::function<Result<Value>(const Value& iterable, int depth)>;
  // `recurse` is empty where the loop is not recursive. depth: 0 for the outermost level.
  LoopContext(Values items, int depth, Recurse recurse)
      : items_(std::move(items)), level_(depth), recurse_(std::move(recurse)) {
    this->depth = depth_of(items_);
  }

  void advance_to(size_t index) { index_ = index; }
  const Values& elements() const { return items_; }

  std::string repr() const override;
  std::string_view type_name() const override { return "LoopContext"; }
  Result<std::optional<Value>> attribute(Machine& machine, std::string_view name) override;
  bool callable() const override { return true; }
  Result<Value> call(Machine& machine, const Arguments& arguments) override;
  std::optional<int64_t> length() const override { return static_cast<int64_t>(items_.size()); }
  void drop_references() override;

 private:
  Result<Value> cycle(const Arguments& arguments) const;
  Result<Value> changed(Machine& machine, const Arguments& arguments);

  Values items_;
  size_t index_ = 0;
  int level_;
  Recurse recurse_;
  std::optional<Value> last_changed_;
};

}  // namespace espalier::text::jinja
