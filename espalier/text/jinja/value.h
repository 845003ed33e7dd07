// Value: one object of the template language, with the types and the identity rules of Python, on
// which Jinja rests. Scalars are held by value, everything else is shared and, but for namespaces,
// iterators and natives, immutable. Each scalar and each byte of text knows whether it came from a
// user (text.h). Not thread-safe beyond reading; a Value lives inside one rendering, or in a parsed
// template as a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/text/jinja/budget.h"
#include "espalier/text/jinja/text.h"

namespace espalier::text::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kRange,      // what range() gives: three numbers
  kView,       // dict.keys(), .values(), .items(): has a length, has no items by index
  kIterator,   // what map, select and other lazy filters give: read once, always true
  kNamespace,  // the only thing a template can change
  kNative,     // functions, macros, loops: native.h
};

class Value;
using Values = std::vector<Value>;
class Native;

int depth_of(const Values& items);  // of a container that holds them

// What is behind a Value that is not a scalar. `depth` counts containers within containers.
struct Object {
  virtual ~Object() = default;
  int depth = 0;
};
struct String : Object {
  Text text;
  bool markup = false;  // result of the `escape` and `safe` filters: jinja2's Markup
};
struct Dict;
struct Range : Object {
  int64_t start = 0, stop = 0, step = 1;
  int64_t length() const;
  int64_t at(int64_t index) const { return start + index * step; }
};
struct Sequence;
struct Iterator;
struct Namespace;

class Value {
 public:
  Value() = default;  // None
  static Value undefined(const std::string& message);
  static Value boolean(bool value, bool from_user = false);
  static Value integer(int64_t value, bool from_user = false);
  static Value real(double value, bool from_user = false);
  static Value string(Text text, bool markup = false);
  static Value literal(std::string_view template_text) {
    return string(Text(template_text, false));
  }
  static Value list(Values items);
  static Value tuple(Values items);
  static Value group(Value grouper, Value members);  // the tuples of groupby
  static Value view(std::string_view name, Values items);
  static Value iterator(Values items, std::optional<Error> failure = std::nullopt);
  static Value dict(std::shared_ptr<Dict> dict);
  static Value range(int64_t start, int64_t stop, int64_t step);
  static Value name_space(std::shared_ptr<Namespace> object);
  static Value native(std::shared_ptr<Native> object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return is(Kind::kBool) || is(Kind::kInt) || is(Kind::kFloat); }
  bool is_integral() const { return is(Kind::kBool) || is(Kind::kInt); }
  bool is_array() const { return is(Kind::kList) || is(Kind::kTuple); }

  // Each accessor may only be called for its kind.
  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }  // bool and int
  double number() const;                        // bool, int and float
  const std::string& undefined_message() const { return text().bytes(); }
  const Text& text() const { return static_cast<const String*>(object_.get())->text; }
  bool is_markup() const;
  const Values& items() const;  // list, tuple, view
  const Sequence& sequence() const;
  const Dict& dict() const;
  const Range& range() const { return *static_cast<const Range*>(object_.get()); }
  Iterator& iterator() const;
  Namespace& name_space() const;
  Native& native() const;
  std::shared_ptr<Native> native_pointer() const;

  const Object* identity() const { return object_.get(); }
  int depth() const { return object_ == nullptr ? 0 : object_->depth; }
  // A scalar's mark, or whether any byte of a string is marked; false for containers.
  bool from_user() const;
  void mark_from_user() { from_user_ = true; }
  uint64_t shallow_bytes() const;  // what an operation on it touches at least

 private:
  Value(Kind kind, std::shared_ptr<Object> object) : kind_(kind), object_(std::move(object)) {}
  Kind kind_ = Kind::kNone;
  bool from_user_ = false;  // scalars only
  union {
    int64_t integer_ = 0;
    double real_;
  };
  std::shared_ptr<Object> object_;
};

struct Sequence : Object {
  explicit Sequence(Values values);
  Values items;
  std::string_view view_name;  // "dict_items"; views only
  bool group = false;          // tuples of groupby answer to .grouper and .list
};

struct Iterator : Object {
  Values items;
  size_t next = 0;
  std::optional<Error> failure;  // met where the items end, as a lazy sequence would
};

// Keys are compared as in Python (1 == 1.0 == True), so they are stored under hash_key().
struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;  // in the order of insertion
  std::unordered_map<std::string, size_t> index;

  const Value* find(const std::string& key) const;
  const Value* find_name(std::string_view name) const;
  void set(std::string key, Value key_value, Value value);
  void set_name(std::string_view name, bool from_user, Value value);
};

struct Namespace : Object {
  std::shared_ptr<Dict> attributes = std::make_shared<Dict>();
};

std::string_view type_name(const Value& value);  // Python's: "str", "NoneType"
bool is_true(const Value& value);
// Errors that many operations share.
Error type_error(std::string what, std::string_view expected, const Value& actual);
Error undefined_error(const Value& undefined);  // use of an undefined value

// A text that is equal for equal keys; an error for what Python cannot hash.
Result<std::string> hash_key(Budget& budget, const Value& value);
std::string name_key(std::string_view name);  // hash_key of a string

Result<bool> equal(Budget& budget, const Value& a, const Value& b);
// a < b, as Python's operator: an error for types without an order.
Result<bool> less(Budget& budget, const Value& a, const Value& b);
// `element in container`.
Result<bool> contains(Budget& budget, const Value& container, const Value& element);

}  // namespace espalier::text::jinja
