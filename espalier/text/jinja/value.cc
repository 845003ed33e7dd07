#include "espalier/text/jinja/value.h"

#include <algorithm>

#include "espalier/text/jinja/native.h"

namespace espalier::text::jinja {
int depth_of(const Values& items) {
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.depth());
  return deepest + 1;
}

int64_t Range::length() const {
  // In 128 bits: the span of two 64-bit numbers does not fit into 64.
  const __int128 span =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  if (span <= 0) return 0;
  return static_cast<int64_t>(std::min<__int128>((span + stride - 1) / stride, INT64_MAX));
}

Sequence::Sequence(Values values) : items(std::move(values)) { depth = depth_of(items); }

const Value* Dict::find(const std::string& key) const {
  const auto found = index.find(key);
  return found == index.end() ? nullptr : &entries[found->second].second;
}
const Value* Dict::find_name(std::string_view name) const { return find(name_key(name)); }

void Dict::set(std::string key, Value key_value, Value value) {
  depth = std::max({depth, key_value.depth() + 1, value.depth() + 1});
  const auto [place, is_new] = index.emplace(std::move(key), entries.size());
  if (is_new) {
    entries.emplace_back(std::move(key_value), std::move(value));
  } else {
    entries[place->second].second = std::move(value);
  }
}
void Dict::set_name(std::string_view name, bool from_user, Value value) {
  set(name_key(name), Value::string(Text(name, from_user)), std::move(value));
}

Value Value::undefined(const std::string& message) {
  auto object = std::make_shared<String>();
  object->text = Text(message, false);
  return Value(Kind::kUndefined, std::move(object));
}
Value Value::boolean(bool value, bool from_user) {
  Value result(Kind::kBool, nullptr);
  result.integer_ = value ? 1 : 0;
  result.from_user_ = from_user;
  return result;
}
Value Value::integer(int64_t value, bool from_user) {
  Value result(Kind::kInt, nullptr);
  result.integer_ = value;
  result.from_user_ = from_user;
  return result;
}
Value Value::real(double value, bool from_user) {
  Value result(Kind::kFloat, nullptr);
  result.real_ = value;
  result.from_user_ = from_user;
  return result;
}
Value Value::string(Text text, bool markup) {
  auto object = std::make_shared<String>();
  object->text = std::move(text);
  object->markup = markup;
  return Value(Kind::kString, std::move(object));
}
Value Value::list(Values items) {
  return Value(Kind::kList, std::make_shared<Sequence>(std::move(items)));
}
Value Value::tuple(Values items) {
  return Value(Kind::kTuple, std::make_shared<Sequence>(std::move(items)));
}
Value Value::group(Value grouper, Value members) {
  auto object = std::make_shared<Sequence>(Values{std::move(grouper), std::move(members)});
  object->group = true;
  return Value(Kind::kTuple, std::move(object));
}
Value Value::view(std::string_view name, Values items) {
  auto object = std::make_shared<Sequence>(std::move(items));
  object->view_name = name;
  return Value(Kind::kView, std::move(object));
}
Value Value::iterator(Values items, std::optional<Error> failure) {
  auto object = std::make_shared<Iterator>();
  object->depth = depth_of(items);
  object->items = std::move(items);
  object->failure = std::move(failure);
  return Value(Kind::kIterator, std::move(object));
}
Value Value::dict(std::shared_ptr<Dict> dict) { return Value(Kind::kDict, std::move(dict)); }
Value Value::range(int64_t start, int64_t stop, int64_t step) {
  auto object = std::make_shared<Range>();
  object->start = start;
  object->stop = stop;
  object->step = step;
  return Value(Kind::kRange, std::move(object));
}
Value Value::name_space(std::shared_ptr<Namespace> object) {
  return Value(Kind::kNamespace, std::move(object));
}
Value Value::native(std::shared_ptr<Native> object) {
  return Value(Kind::kNative, std::move(object));
}

double Value::number() const { return is(Kind::kFloat) ? real_ : static_cast<double>(integer_); }
bool Value::is_markup() const {
  return is(Kind::kString) && static_cast<const String*>(object_.get())->markup;
}
const Sequence& Value::sequence() const { return *static_cast<const Sequence*>(object_.get()); }
const Values& Value::items() const { return sequence().items; }
const Dict& Value::dict() const { return *static_cast<const Dict*>(object_.get()); }
Iterator& Value::iterator() const { return *static_cast<Iterator*>(object_.get()); }
Namespace& Value::name_space() const { return *static_cast<Namespace*>(object_.get()); }
Native& Value::native() const { return *static_cast<Native*>(object_.get()); }
std::shared_ptr<Native> Value::native_pointer() const {
  return std::static_pointer_cast<Native>(object_);
}

bool Value::from_user() const { return is(Kind::kString) ? text().has_user() : from_user_; }

uint64_t Value::shallow_bytes() const {
  switch (kind_) {
    case Kind::kString:
      return text().size();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return items().size() * sizeof(Value);
    case Kind::kDict:
      return dict().entries.size() * 2 * sizeof(Value);
    case Kind::kIterator:
      return (iterator().items.size() - iterator().next) * sizeof(Value);
    default:
      return 0;
  }
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.is_markup() ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      return value.sequence().view_name;
    case Kind::kIterator:
      return "generator";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kNative:
      return value.native().type_name();
  }
  return "object";
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.number() != 0.0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return !value.items().empty();
    case Kind::kDict:
      return !value.dict().entries.empty();
    case Kind::kRange:
      return value.range().length() != 0;
    case Kind::kNative:
      return value.native().length().value_or(1) != 0;
    case Kind::kIterator:
    case Kind::kNamespace:
      return true;
  }
  return true;
}

Error type_error(std::string what, std::string_view expected, const Value& actual) {
  if (actual.is(Kind::kUndefined)) return undefined_error(actual);
  return Error{.what = std::move(what),
               .expected = std::string(expected),
               .actual = std::string(type_name(actual)),
               .fix = "Test the type or convert it first."};
}

Error undefined_error(const Value& undefined) {
  return Error{.what = undefined.undefined_message(),
               .expected = "a defined value",
               .actual = "an undefined one",
               .fix = "Test it with 'is defined', or use the default filter."};
}

Result<std::optional<Value>> Native::attribute(Machine&, std::string_view) {
  return std::optional<Value>();
}

Result<Value> Native::call(Machine&, const Arguments&) {
  return Error{.what = fmt::format("'{}' cannot be called", type_name()),
               .expected = "a function",
               .actual = repr(),
               .fix = "Remove the parentheses."};
}

Value make_function(std::string name, Function::Body body, int depth) {
  auto function = std::make_shared<Function>(std::move(name), std::move(body));
  function->depth = depth;
  return Value::native(std::move(function));
}

}  // namespace espalier::text::jinja
