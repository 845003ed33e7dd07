// Filters that read or give sequences (declared in filter_functions.h).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "espalier/text/jinja/filter_functions.h"
#include "espalier/text/jinja/represent.h"
#include "espalier/text/jinja/slicing.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja::filters {
namespace {

Value ignore_case(const Value& key, bool case_sensitive) {
  if (case_sensitive || !key.is(Kind::kString)) return key;
  return Value::string(change_case(key.text(), Case::kLower));
}

// Stable, by keys that were computed before. Like Python's sort it only asks "<".
Result<std::vector<size_t>> sorted_order(Machine& machine, const Values& keys, bool reverse) {
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::optional<Error> failure;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (failure.has_value()) return false;
    auto result =
        reverse ? less(machine.budget, keys[b], keys[a]) : less(machine.budget, keys[a], keys[b]);
    if (!result.ok()) failure = result.error();
    return result.ok() && *result;
  });
  if (failure.has_value()) return *failure;
  return order;
}

// "name,address.city": a list of keys.
Result<Value> multiple_keys(Machine& machine, const Value& item, const Value& attribute,
                            bool case_sensitive) {
  std::vector<Text> paths;
  if (attribute.is(Kind::kString)) {
    ASSIGN_OR_RETURN(paths, split(machine.budget, attribute.text(), ",", -1));
  }
  Values keys;
  for (const Text& path : paths) {
    ASSIGN_OR_RETURN(const Value key, machine.attribute_path(item, Value::string(path)));
    keys.push_back(ignore_case(key, case_sensitive));
  }
  if (paths.empty()) {
    ASSIGN_OR_RETURN(const Value key, machine.attribute_path(item, attribute));
    keys.push_back(ignore_case(key, case_sensitive));
  }
  return Value::list(std::move(keys));
}

Result<Value> extreme(Machine& machine, const Value& value, const Bound& arguments, bool want_max) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const bool case_sensitive = arguments.truth_or(0, false);
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const Value raw, machine.attribute_path(items[i], arguments.value(1)));
    const Value key = ignore_case(raw, case_sensitive);
    bool better = i == 0;
    if (!better) {
      ASSIGN_OR_RETURN(better, want_max ? less(machine.budget, best_key, key)
                                        : less(machine.budget, key, best_key));
    }
    if (!better) continue;
    best = i;
    best_key = key;
  }
  return items[best];
}

}  // namespace

Result<Value> length(Machine&, const Value& value, const Bound&) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return Value::integer(0);
    case Kind::kString:
      return Value::integer(static_cast<int64_t>(code_point_count(value.text().bytes())));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return Value::integer(static_cast<int64_t>(value.items().size()));
    case Kind::kDict:
      return Value::integer(static_cast<int64_t>(value.dict().entries.size()));
    case Kind::kRange:
      return Value::integer(value.range().length());
    case Kind::kNative:
      if (const auto size = value.native().length(); size.has_value()) return Value::integer(*size);
      break;
    default:
      break;
  }
  return type_error("this value has no length", "a string, list or dict", value);
}

Result<Value> to_list(Machine& machine, const Value& value, const Bound&) {
  ASSIGN_OR_RETURN(Values items, machine.iterate(value));
  return Value::list(std::move(items));
}

Result<Value> first(Machine& machine, const Value& value, const Bound&) {
  if (value.is(Kind::kIterator) && value.iterator().next < value.iterator().items.size()) {
    return value.iterator().items[value.iterator().next++];  // what fails later is not reached
  }
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Result<Value> last(Machine& machine, const Value& value, const Bound&) {
  if (value.is(Kind::kIterator))
    return type_error("last wants a sequence", "a list or a string", value);
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> reverse(Machine& machine, const Value& value, const Bound&) {
  if (value.is(Kind::kString))
    return slice(machine.budget, value, Value(), Value(), Value::integer(-1));
  ASSIGN_OR_RETURN(Values items, machine.iterate(value));
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::kIterator)) return Value::list(std::move(items));
  return Value::iterator(std::move(items));
}

Result<Value> sort(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  Values keys;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(
        Value key, multiple_keys(machine, item, arguments.value(2), arguments.truth_or(1, false)));
    keys.push_back(std::move(key));
  }
  ASSIGN_OR_RETURN(const auto order, sorted_order(machine, keys, arguments.truth_or(0, false)));
  Values sorted;
  for (const size_t i : order) sorted.push_back(items[i]);
  return Value::list(std::move(sorted));
}

Result<Value> dictsort(Machine& machine, const Value& value, const Bound& arguments) {
  const std::string by =
      arguments.value(1).is(Kind::kString) ? arguments.value(1).text().bytes() : "key";
  if (by != "key" && by != "value")
    return type_error("dictsort sorts by", "'key' or 'value'", arguments.value(1));
  if (!value.is(Kind::kDict)) return type_error("dictsort wants a dict", "dict", value);
  const auto& entries = value.dict().entries;
  RETURN_IF_ERROR(machine.budget.spend(entries.size(), Budget::kStepBytes));
  Values keys;
  for (const auto& [key, content] : entries) {
    keys.push_back(ignore_case(by == "key" ? key : content, arguments.truth_or(0, false)));
  }
  ASSIGN_OR_RETURN(const auto order, sorted_order(machine, keys, arguments.truth_or(2, false)));
  Values sorted;
  for (const size_t i : order)
    sorted.push_back(Value::tuple({entries[i].first, entries[i].second}));
  return Value::list(std::move(sorted));
}

Result<Value> groupby(Machine& machine, const Value& value, const Bound& arguments) {
  const Value& attribute = arguments.value(0);
  const Value& fallback = arguments.value(1);
  const bool case_sensitive = arguments.truth_or(2, false);
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  RETURN_IF_ERROR(machine.budget.spend(items.size(), Budget::kStepBytes));
  Values keys;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(const Value key, machine.attribute_path(item, attribute, fallback));
    keys.push_back(ignore_case(key, case_sensitive));
  }
  ASSIGN_OR_RETURN(const auto order, sorted_order(machine, keys, false));
  Values groups;
  for (size_t begin = 0; begin < order.size();) {
    Values members;
    size_t end = begin;
    for (; end < order.size(); ++end) {
      ASSIGN_OR_RETURN(const bool same,
                       equal(machine.budget, keys[order[begin]], keys[order[end]]));
      if (!same) break;
      members.push_back(items[order[end]]);
    }
    ASSIGN_OR_RETURN(const Value name,
                     machine.attribute_path(members.front(), attribute, fallback));
    groups.push_back(Value::group(name, Value::list(std::move(members))));
    begin = std::max(end, begin + 1);
  }
  return Value::list(std::move(groups));
}

Result<Value> unique(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  std::set<std::string> seen;
  Values kept;
  for (const Value& item : items) {
    const auto key = [&]() -> Result<std::string> {
      ASSIGN_OR_RETURN(const Value raw, machine.attribute_path(item, arguments.value(1)));
      return hash_key(machine.budget, ignore_case(raw, arguments.truth_or(0, false)));
    }();
    if (!key.ok()) return Value::iterator(std::move(kept), key.error());
    if (seen.insert(*key).second) kept.push_back(item);
  }
  return Value::iterator(std::move(kept));
}

Result<Value> minimum(Machine& machine, const Value& value, const Bound& arguments) {
  return extreme(machine, value, arguments, false);
}
Result<Value> maximum(Machine& machine, const Value& value, const Bound& arguments) {
  return extreme(machine, value, arguments, true);
}

Result<Value> batch(Machine& machine, const Value& value, const Bound& arguments) {
  const Value& linecount = arguments.value(0);
  const Value& fill = arguments.value(1);
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  // Another size is reached by no row; jinja2 notices it only when it has to fill one up.
  const double size = linecount.is_number() ? linecount.number() : -1;
  if (!linecount.is_number() && !fill.is(Kind::kNone) && !items.empty()) {
    return Value::iterator({}, type_error("batch wants a size", "int", linecount));
  }
  Values rows;
  Values row;
  RETURN_IF_ERROR(machine.budget.spend(items.size(), Budget::kStepBytes));
  for (const Value& item : items) {
    if (static_cast<double>(row.size()) == size) {
      rows.push_back(Value::list(std::move(row)));
      row.clear();
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    const double missing = size - static_cast<double>(row.size());
    if (!fill.is(Kind::kNone) && missing > 0) {
      RETURN_IF_ERROR(
          machine.budget.spend(static_cast<uint64_t>(std::min(missing, 1e18)), sizeof(Value)));
      row.resize(row.size() + static_cast<size_t>(missing), fill);
    }
    rows.push_back(Value::list(std::move(row)));
  }
  return Value::iterator(std::move(rows));
}

Result<Value> slice_list(Machine& machine, const Value& value, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t slices, arguments.integer(0));
  const Value& fill = arguments.value(1);
  ASSIGN_OR_RETURN(const Values items, machine.iterate(value));
  if (slices == 0)
    return Value::iterator(
        {}, type_error("slice wants a number of slices", "not 0", Value::integer(0)));
  RETURN_IF_ERROR(machine.budget.spend(static_cast<uint64_t>(std::max<int64_t>(slices, 0)),
                                       Budget::kStepBytes));
  const auto length = static_cast<int64_t>(items.size());
  Values columns;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const bool has_extra = i < length % slices;
    const int64_t end = begin + length / slices + (has_extra ? 1 : 0);
    Values column(items.begin() + begin, items.begin() + end);
    if (!fill.is(Kind::kNone) && !has_extra) column.push_back(fill);
    columns.push_back(Value::list(std::move(column)));
    begin = end;
  }
  return Value::iterator(std::move(columns));
}

}  // namespace espalier::text::jinja::filters
