// Equality, order, membership and hashing of values: Python's rules for the types of value.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "espalier/text/jinja/native.h"
#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {
namespace {

// Integers beyond 2^53 do not fit into a double, so int against float is compared exactly.
int compare_numbers(const Value& a, const Value& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
  if (a.is_integral() && b.is_integral()) return sign(a.integer(), b.integer());
  if (!a.is_integral() && !b.is_integral()) return sign(a.number(), b.number());
  if (!a.is_integral()) return -compare_numbers(b, a);
  const double real = b.number();
  if (real >= 0x1p63) return -1;
  if (real < -0x1p63) return 1;
  const auto whole = static_cast<int64_t>(real);
  if (a.integer() != whole) return sign(a.integer(), whole);
  return sign(0.0, real - static_cast<double>(whole));
}

bool is_nan(const Value& value) { return value.is(Kind::kFloat) && std::isnan(value.number()); }

Result<bool> equal_arrays(Budget& budget, const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equal(budget, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, place] : a.index) {
    const Value* other = b.find(key);
    if (other == nullptr) return false;
    ASSIGN_OR_RETURN(const bool same, equal(budget, a.entries[place].second, *other));
    if (!same) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  const int64_t length = a.length();
  if (length != b.length()) return false;
  if (length == 0) return true;
  return a.start == b.start && (length == 1 || a.step == b.step);
}

Error no_order(const Value& a, const Value& b) {
  return Error{.what = "these values have no order",
               .expected = "two numbers, two strings or two lists",
               .actual = fmt::format("{} < {}", type_name(a), type_name(b)),
               .fix = "Convert one of them first."};
}

Result<bool> less_arrays(Budget& budget, const Values& a, const Values& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, equal(budget, a[i], b[i]));
    if (!same) return less(budget, a[i], b[i]);
  }
  return a.size() < b.size();
}

}  // namespace

Result<bool> equal(Budget& budget, const Value& a, const Value& b) {
  RETURN_IF_ERROR(budget.spend(Budget::kStepBytes / 4));
  if (a.is_number() && b.is_number()) {
    return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) == 0;
  }
  if (a.kind() != b.kind()) return false;
  if (a.identity() != nullptr && a.identity() == b.identity()) return true;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      RETURN_IF_ERROR(budget.spend(std::min(a.text().size(), b.text().size())));
      return a.text().bytes() == b.text().bytes();
    case Kind::kList:
    case Kind::kTuple:
      return equal_arrays(budget, a.items(), b.items());
    case Kind::kDict:
      return equal_dicts(budget, a.dict(), b.dict());
    case Kind::kRange:
      return equal_ranges(a.range(), b.range());
    default:
      return false;  // by identity
  }
}

Result<bool> less(Budget& budget, const Value& a, const Value& b) {
  RETURN_IF_ERROR(budget.spend(Budget::kStepBytes / 4));
  for (const Value* side : {&a, &b}) {
    if (side->is(Kind::kUndefined)) return undefined_error(*side);
  }
  if (a.is_number() && b.is_number()) {
    return !is_nan(a) && !is_nan(b) && compare_numbers(a, b) < 0;
  }
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    RETURN_IF_ERROR(budget.spend(std::min(a.text().size(), b.text().size())));
    return a.text().bytes() < b.text().bytes();  // the order of UTF-8 bytes is that of code points
  }
  if (a.is_array() && a.kind() == b.kind()) return less_arrays(budget, a.items(), b.items());
  return no_order(a, b);
}

Result<bool> contains(Budget& budget, const Value& container, const Value& element) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kString: {
      if (!element.is(Kind::kString)) {
        return type_error("only a string can be in a string", "str", element);
      }
      RETURN_IF_ERROR(budget.spend(container.text().size()));
      return container.text().bytes().find(element.text().bytes()) != std::string::npos;
    }
    case Kind::kDict: {
      ASSIGN_OR_RETURN(const std::string key, hash_key(budget, element));
      return container.dict().find(key) != nullptr;
    }
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      for (const Value& item : container.items()) {
        ASSIGN_OR_RETURN(const bool same, equal(budget, item, element));
        if (same) return true;
      }
      return false;
    case Kind::kIterator: {
      Iterator& iterator = container.iterator();
      while (iterator.next < iterator.items.size()) {
        ASSIGN_OR_RETURN(const bool same, equal(budget, iterator.items[iterator.next++], element));
        if (same) return true;
      }
      if (iterator.failure.has_value()) return *iterator.failure;
      return false;
    }
    case Kind::kRange: {
      const Range& range = container.range();
      if (!element.is_number() || std::floor(element.number()) != element.number()) return false;
      if (std::abs(element.number()) > 0x1p63) return false;
      const __int128 distance =
          (element.is_integral() ? element.integer() : static_cast<__int128>(element.number())) -
          range.start;
      return distance % range.step == 0 && distance / range.step >= 0 &&
             distance / range.step < range.length();
    }
    default:
      return type_error("wrong type after 'in'", "a string, a list or a dict", container);
  }
}

std::string name_key(std::string_view name) { return fmt::format("s{}", name); }

Result<std::string> hash_key(Budget& budget, const Value& value) {
  RETURN_IF_ERROR(budget.spend(value.shallow_bytes() + Budget::kStepBytes / 4));
  switch (value.kind()) {
    case Kind::kUndefined:
      return std::string("u");
    case Kind::kNone:
      return std::string("n");
    case Kind::kString:
      return name_key(value.text().bytes());
    case Kind::kBool:
    case Kind::kInt:
      return fmt::format("i{}", value.integer());
    case Kind::kFloat: {
      const double real = value.number();
      const bool whole = std::floor(real) == real && real >= -0x1p63 && real < 0x1p63;
      if (whole) return fmt::format("i{}", static_cast<int64_t>(real));
      return fmt::format("f{}", real);
    }
    case Kind::kTuple: {
      std::string key = "t";
      for (const Value& item : value.items()) {
        ASSIGN_OR_RETURN(const std::string part, hash_key(budget, item));
        RETURN_IF_ERROR(budget.spend(part.size()));
        key += fmt::format("{}:{}", part.size(), part);
      }
      return key;
    }
    case Kind::kRange:
      return fmt::format("r{}:{}:{}", value.range().length(), value.range().start,
                         value.range().step);
    case Kind::kNative:
    case Kind::kNamespace:
    case Kind::kIterator:
      return fmt::format("p{}", static_cast<const void*>(value.identity()));
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      break;
  }
  return type_error("this value cannot be a key", "a string, a number or a tuple", value);
}

}  // namespace espalier::text::jinja
