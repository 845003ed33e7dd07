// Scope: the variables of one frame of a template, with the frames around it. Scopes are shared,
// because a macro sees the frame it was defined in for as long as it lives; look-up is at the time
// of use, as in Python.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/text/jinja/machine.h"

namespace espalier::text::jinja {

class Scope : public CycleBreaker {
 public:
  explicit Scope(std::shared_ptr<Scope> parent = nullptr) : parent_(std::move(parent)) {}

  // From here on the name is undefined, whatever scopes outside say, until it is set.
  void declare(const std::string& name) { slot(name) = std::nullopt; }
  void set(const std::string& name, Value value) { slot(name) = std::move(value); }

  // The slot of the name in the innermost scope that has one; nullptr where none has.
  const std::optional<Value>* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
      for (const auto& [key, value] : scope->variables_) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  }
  void drop_references() override {
    variables_.clear();
    parent_.reset();
  }

 private:
  std::optional<Value>& slot(const std::string& name) {
    for (auto& [key, value] : variables_) {
      if (key == name) return value;
    }
    return variables_.emplace_back(name, std::nullopt).second;
  }
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<std::string, std::optional<Value>>>
      variables_;  // few: a linear search is fastest
};

}  // namespace espalier::text::jinja
