// Machine: what filters, methods and natives need from a rendering: its budget, calls, access to
// attributes and items, iteration. One per rendering, one thread; owns what could form a cycle and
// breaks it at the end.
#pragma once

#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "espalier/text/jinja/native.h"
#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

// Objects that a template can make point at themselves: namespaces, and scopes that a macro holds.
class CycleBreaker {
 public:
  virtual ~CycleBreaker() = default;
  virtual void drop_references() = 0;
};

class Machine {
 public:
  explicit Machine(std::time_t now_seconds) : now(now_seconds) {}
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Budget budget;
  const std::time_t now;  // for strftime_now

  Result<Value> call(const Value& callee, const Arguments& arguments);
  // object.name: an attribute, else an item of that name, else undefined.
  Result<Value> attribute(const Value& object, std::string_view name);
  // object[key]: an item, else (a string) an attribute of that name, else undefined.
  Result<Value> item(const Value& object, const Value& key);
  // The attribute alone; nothing where the object has none of that name.
  Result<std::optional<Value>> own_attribute(const Value& object, std::string_view name);
  // "a.b.0" as the filters' `attribute` argument reads it; an int is one index. `fallback`, unless
  // none, takes the place of what is undefined on the way.
  Result<Value> attribute_path(const Value& object, const Value& path,
                               const Value& fallback = Value());
  // All elements, as a for loop would meet them; reads iterators to their end.
  Result<Values> iterate(const Value& iterable);
  Result<Value> filter(std::string_view name, const Value& value, const Arguments& arguments);
  Result<bool> test(std::string_view name, const Value& value, const Arguments& arguments);

  Value make_namespace(std::shared_ptr<Dict> attributes);
  void own(std::shared_ptr<CycleBreaker> object) { cycle_breakers_.push_back(std::move(object)); }

  // Counts one level of recursion for as long as it lives.
  class Level {
   public:
    explicit Level(Machine& machine) : machine_(machine) { ++machine_.level_; }
    ~Level() { --machine_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Status check() const;

   private:
    Machine& machine_;
  };

 private:
  Result<std::optional<Value>> own_item(const Value& object, const Value& key);

  int level_ = 0;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  std::vector<std::shared_ptr<CycleBreaker>> cycle_breakers_;
};

}  // namespace espalier::text::jinja
