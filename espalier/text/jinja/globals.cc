#include "espalier/text/jinja/globals.h"

#include <fmt/format.h>

#include "espalier/text/jinja/binding.h"
#include "espalier/text/jinja/machine.h"
#include "espalier/text/jinja/represent.h"

namespace espalier::text::jinja {
namespace {

constexpr int64_t kRangeLimit = 100000;  // as jinja2's sandbox
constexpr size_t kTimeFormatLimit = 1024;

Result<Value> make_range(Machine&, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t first, arguments.integer(0));
  int64_t start = first;
  int64_t stop = 0;
  if (arguments.has(1)) {
    ASSIGN_OR_RETURN(stop, arguments.integer(1));
  } else {
    start = 0;
    stop = first;
  }
  ASSIGN_OR_RETURN(const int64_t step, arguments.integer_or(2, 1));
  if (step == 0) return type_error("the step of a range is 0", "another number", Value::integer(0));
  const Value range = Value::range(start, stop, step);
  if (range.range().length() <= kRangeLimit) return range;
  return Error{.what = "a range is too long",
               .expected = fmt::format("at most {} numbers", kRangeLimit),
               .actual = fmt::format("{}", range.range().length()),
               .fix = "Shorten it."};
}

// dict(mapping or pairs, **entries).
Result<std::shared_ptr<Dict>> build_dict(Machine& machine, const Bound& arguments) {
  auto dict = std::make_shared<Dict>();
  const Value& source = arguments.value(0);
  if (source.is(Kind::kDict)) {
    RETURN_IF_ERROR(machine.budget.spend(source.shallow_bytes()));
    *dict = source.dict();
  } else if (arguments.has(0)) {
    ASSIGN_OR_RETURN(const Values pairs, machine.iterate(source));
    for (const Value& pair : pairs) {
      ASSIGN_OR_RETURN(const Values parts, machine.iterate(pair));
      if (parts.size() != 2) return type_error("dict wants pairs", "a key and a value", pair);
      ASSIGN_OR_RETURN(std::string key, hash_key(machine.budget, parts[0]));
      dict->set(std::move(key), parts[0], parts[1]);
    }
  }
  for (const auto& [name, value] : arguments.named_rest()) dict->set_name(name, false, value);
  return dict;
}

Result<Value> make_dict(Machine& machine, const Bound& arguments) {
  ASSIGN_OR_RETURN(std::shared_ptr<Dict> dict, build_dict(machine, arguments));
  return Value::dict(std::move(dict));
}

Result<Value> make_namespace(Machine& machine, const Bound& arguments) {
  ASSIGN_OR_RETURN(std::shared_ptr<Dict> attributes, build_dict(machine, arguments));
  for (const auto& [key, value] : attributes->entries) {
    if (key.is(Kind::kString) && key.text().bytes().starts_with('_')) {
      return type_error("a namespace has no attributes that begin with '_'", "another name", key);
    }
  }
  return machine.make_namespace(std::move(attributes));
}

Result<Value> raise_exception(Machine& machine, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text message, to_text(machine.budget, arguments.value(0)));
  return Error{.what = "the template refuses these messages: " + message.bytes(),
               .expected = "messages as the model was trained on",
               .actual = "others",
               .fix = "Change the messages or use another template."};
}

Result<Value> strftime_now(Machine& machine, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text format, arguments.text(0));
  if (format.size() > kTimeFormatLimit) {
    return type_error("the format of a date is too long",
                      fmt::format("at most {} bytes", kTimeFormatLimit), arguments.value(0));
  }
  std::tm local = {};
  localtime_r(&machine.now, &local);
  // A local time without zone, as Python's datetime.now(): these three are its own, not the C
  // library's.
  std::string pattern;
  for (size_t i = 0; i < format.size(); ++i) {
    const char next = i + 1 < format.size() ? format.bytes()[i + 1] : '\0';
    if (format.bytes()[i] != '%' || next == '\0') {
      pattern += format.bytes()[i];
      continue;
    }
    ++i;
    if (next == 'f')
      pattern += "000000";
    else if (next != 'z' && next != 'Z')
      (pattern += '%') += next;
  }
  if (pattern.empty()) return Value::literal("");
  pattern += '.';  // so that an empty result is told from one that does not fit
  char buffer[16 * kTimeFormatLimit];
  const size_t length = std::strftime(buffer, sizeof buffer, pattern.c_str(), &local);
  return Value::literal(std::string_view(buffer, length == 0 ? 0 : length - 1));
}

class Cycler : public Native, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Values items) : items_(std::move(items)) { depth = depth_of(items_); }
  std::string repr() const override { return "<Cycler>"; }
  std::string_view type_name() const override { return "Cycler"; }
  Result<std::optional<Value>> attribute(Machine&, std::string_view name) override {
    if (name == "current") return std::optional<Value>(items_[position_]);
    const auto self = shared_from_this();
    if (name == "next") {
      return std::optional<Value>(make_function(
          "next",
          [self](Machine&, const Arguments&) -> Result<Value> {
            const size_t position =
                std::exchange(self->position_, (self->position_ + 1) % self->items_.size());
            return self->items_[position];
          },
          depth + 1));
    }
    if (name == "reset") {
      return std::optional<Value>(make_function(
          "reset",
          [self](Machine&, const Arguments&) -> Result<Value> {
            self->position_ = 0;
            return Value();
          },
          depth + 1));
    }
    return std::optional<Value>();
  }

 private:
  Values items_;
  size_t position_ = 0;
};

Result<Value> make_cycler(Machine&, const Bound& arguments) {
  if (arguments.rest().empty())
    return type_error("cycler has nothing to cycle through", "values", Value());
  return Value::native(std::make_shared<Cycler>(arguments.rest()));
}

Result<Value> make_joiner(Machine&, const Bound& arguments) {
  const Value separator = arguments.value(0, Value::literal(", "));
  const auto used = std::make_shared<bool>(false);
  return make_function(
      "joiner",
      [separator, used](Machine&, const Arguments&) -> Result<Value> {
        return std::exchange(*used, true) ? separator : Value::literal("");
      },
      separator.depth() + 1);
}

struct Global {
  std::string_view name;
  std::string_view parameters;  // see binding.h
  Result<Value> (*apply)(Machine& machine, const Bound& arguments);
};
constexpr Global kGlobals[] = {
    {"cycler", "*", make_cycler},
    {"dict", "_mapping? **", make_dict},
    {"joiner", "sep?", make_joiner},
    {"namespace", "_mapping? **", make_namespace},
    {"raise_exception", "message", raise_exception},
    {"range", "_start _stop? _step?", make_range},
    {"strftime_now", "format", strftime_now},
};

}  // namespace

void add_builtin_globals(Dict& globals) {
  for (const Global& global : kGlobals) {
    globals.set_name(
        global.name, false,
        make_function(std::string(global.name),
                      [&global](Machine& machine, const Arguments& arguments) -> Result<Value> {
                        ASSIGN_OR_RETURN(const Bound bound,
                                         Bound::bind(global.name, global.parameters, arguments));
                        return global.apply(machine, bound);
                      }));
  }
}

}  // namespace espalier::text::jinja
