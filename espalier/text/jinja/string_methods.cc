// The methods of Python's str, but for those that give bytes.
#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/escape.h"
#include "espalier/text/jinja/format.h"
#include "espalier/text/jinja/methods.h"
#include "espalier/text/jinja/slicing.h"
#include "espalier/text/jinja/text_operations.h"

namespace espalier::text::jinja {
namespace {

Value like(const Value& self, Text text) {
  return Value::string(std::move(text), self.is_markup());
}

// An argument that becomes part of the result: escaped where the string is markup.
Result<Text> inserted(Machine& machine, const Value& self, const Value& argument) {
  if (!argument.is(Kind::kString))
    return type_error("an argument is not a string", "str", argument);
  if (!self.is_markup()) return argument.text();
  ASSIGN_OR_RETURN(const Value escaped, to_markup(machine.budget, argument));
  return escaped.text();
}

template <Case to>
Result<Value> in_case(Machine&, const Value& self, const Bound&) {
  return like(self, change_case(self.text(), to));
}
template <Text (*transform)(const Text&)>
Result<Value> transformed(Machine&, const Value& self, const Bound&) {
  return like(self, transform(self.text()));
}

template <bool left, bool right>
Result<Value> stripped(Machine& machine, const Value& self, const Bound& arguments) {
  if (arguments.value(0).is(Kind::kNone)) return like(self, strip(self.text(), {}, left, right));
  ASSIGN_OR_RETURN(const Text chars, arguments.text(0));
  RETURN_IF_ERROR(machine.budget.spend(self.text().size(), chars.size()));
  return like(self, strip(self.text(), chars.bytes(), left, right));
}

Value texts_to_list(const Value& self, std::vector<Text> texts) {
  Values items;
  items.reserve(texts.size());
  for (Text& text : texts) items.push_back(like(self, std::move(text)));
  return Value::list(std::move(items));
}

template <bool from_right>
Result<Value> split_method(Machine& machine, const Value& self, const Bound& arguments) {
  std::optional<std::string_view> separator;
  Text separator_text;
  if (!arguments.value(0).is(Kind::kNone)) {
    ASSIGN_OR_RETURN(separator_text, arguments.text(0));
    separator = separator_text.bytes();
  }
  ASSIGN_OR_RETURN(const int64_t limit, arguments.integer_or(1, -1));
  ASSIGN_OR_RETURN(std::vector<Text> parts,
                   from_right ? split_from_right(machine.budget, self.text(), separator, limit)
                              : split(machine.budget, self.text(), separator, limit));
  return texts_to_list(self, std::move(parts));
}

Result<Value> splitlines(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t keep_ends, arguments.integer_or(0, 0));
  ASSIGN_OR_RETURN(std::vector<Text> lines,
                   split_lines(machine.budget, self.text(), keep_ends != 0));
  return texts_to_list(self, std::move(lines));
}

Result<Value> replace_method(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text from, arguments.text(0));
  ASSIGN_OR_RETURN(const Text to, inserted(machine, self, arguments.value(1)));
  ASSIGN_OR_RETURN(const int64_t limit, arguments.integer_or(2, -1));
  ASSIGN_OR_RETURN(Text text, replace(machine.budget, self.text(), from, to, limit));
  return like(self, std::move(text));
}

// The part of the string between the optional arguments `start` and `end`, by characters.
struct Part {
  std::string_view bytes;
  int64_t start = 0;   // in characters
  bool exists = true;  // false where start lies behind the string: not even "" is found there
};
Result<Part> part_of(Machine& machine, const Value& self, const Bound& arguments) {
  const std::string& bytes = self.text().bytes();
  if (!arguments.has(1) && !arguments.has(2)) return Part{bytes, 0, true};
  RETURN_IF_ERROR(machine.budget.spend(bytes.size()));
  const auto length = static_cast<int64_t>(code_point_count(bytes));
  ASSIGN_OR_RETURN(const SliceBounds bounds,
                   resolve_slice(length, arguments.value(1), arguments.value(2), Value()));
  const bool starts_inside =
      !arguments.value(1).is_integral() || arguments.value(1).integer() <= length;
  const bool exists = starts_inside && bounds.start <= bounds.stop;
  const size_t begin = byte_offset(bytes, static_cast<size_t>(bounds.start));
  const std::string_view rest = std::string_view(bytes).substr(begin);
  return Part{rest.substr(0, byte_offset(rest, static_cast<size_t>(bounds.count))), bounds.start,
              exists};
}

template <bool from_right>
Result<int64_t> find_index(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text needle, arguments.text(0));
  ASSIGN_OR_RETURN(const Part part, part_of(machine, self, arguments));
  const size_t at = from_right ? part.bytes.rfind(needle.bytes()) : part.bytes.find(needle.bytes());
  if (at == std::string_view::npos || !part.exists) return int64_t{-1};
  return part.start + static_cast<int64_t>(code_point_count(part.bytes.substr(0, at)));
}
template <bool from_right>
Result<Value> find_method(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t index, find_index<from_right>(machine, self, arguments));
  return Value::integer(index);
}
template <bool from_right>
Result<Value> index_method(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t index, find_index<from_right>(machine, self, arguments));
  if (index >= 0) return Value::integer(index);
  return Error{.what = "a substring was not found",
               .expected = arguments.value(0).text().bytes(),
               .actual = "nothing",
               .fix = "Use find(), or test it with 'in' first."};
}

Result<Value> count_method(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text needle, arguments.text(0));
  ASSIGN_OR_RETURN(const Part part, part_of(machine, self, arguments));
  if (!part.exists) return Value::integer(0);
  if (needle.empty()) return Value::integer(static_cast<int64_t>(code_point_count(part.bytes)) + 1);
  int64_t count = 0;
  for (size_t at = part.bytes.find(needle.bytes()); at != std::string_view::npos;
       at = part.bytes.find(needle.bytes(), at + needle.size())) {
    ++count;
  }
  return Value::integer(count);
}

template <bool at_end>
Result<Value> has_affix(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Part part, part_of(machine, self, arguments));
  const Value& wanted = arguments.value(0);
  const Values affixes = wanted.is(Kind::kTuple) ? wanted.items() : Values{wanted};
  for (const Value& affix : affixes) {
    if (!affix.is(Kind::kString)) {
      return type_error("startswith and endswith want strings", "str or a tuple of str", affix);
    }
    const std::string& bytes = affix.text().bytes();
    const bool found = at_end ? part.bytes.ends_with(bytes) : part.bytes.starts_with(bytes);
    if (found && part.exists) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool at_end>
Result<Value> without_affix(Machine&, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text affix, arguments.text(0));
  const Text& text = self.text();
  const size_t size = text.size();
  if (at_end && text.bytes().ends_with(affix.bytes())) {
    return like(self, text.substr(0, size - affix.size()));
  }
  if (!at_end && text.bytes().starts_with(affix.bytes())) {
    return like(self, text.substr(affix.size(), size));
  }
  return self;
}

template <bool from_right>
Result<Value> partition(Machine&, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Text separator, arguments.text(0));
  const Text& text = self.text();
  if (separator.empty()) {
    return Error{.what = "partition with an empty separator",
                 .expected = "a separator",
                 .actual = "''",
                 .fix = "Correct the template."};
  }
  const size_t at =
      from_right ? text.bytes().rfind(separator.bytes()) : text.bytes().find(separator.bytes());
  const auto piece = [&](size_t begin, size_t end) { return like(self, text.substr(begin, end)); };
  if (at == std::string::npos) {
    if (from_right) return Value::tuple({piece(0, 0), piece(0, 0), self});
    return Value::tuple({self, piece(0, 0), piece(0, 0)});
  }
  const size_t after = at + separator.size();
  return Value::tuple({piece(0, at), piece(at, after), piece(after, text.size())});
}

template <Side side>
Result<Value> padded(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t width, arguments.integer(0));
  Text fill(" ", false);
  if (arguments.has(1)) {
    ASSIGN_OR_RETURN(fill, inserted(machine, self, arguments.value(1)));
    if (code_point_count(fill.bytes()) != 1) {
      return type_error("the fill must be one character", "a string of one character",
                        arguments.value(1));
    }
  }
  ASSIGN_OR_RETURN(Text text, pad(machine.budget, self.text(), width, fill, side));
  return like(self, std::move(text));
}

Result<Value> zfill(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t width, arguments.integer(0));
  ASSIGN_OR_RETURN(Text text, zero_fill(machine.budget, self.text(), width));
  return like(self, std::move(text));
}

Result<Value> expandtabs(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const int64_t tab_size, arguments.integer_or(0, 8));
  ASSIGN_OR_RETURN(Text text, expand_tabs(machine.budget, self.text(), tab_size));
  return like(self, std::move(text));
}

Result<Value> join_method(Machine& machine, const Value& self, const Bound& arguments) {
  ASSIGN_OR_RETURN(const Values items, machine.iterate(arguments.value(0)));
  std::vector<Text> parts;
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Text part, inserted(machine, self, item));
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(Text text, join_texts(machine.budget, self.text(), parts));
  return like(self, std::move(text));
}

Result<Value> format_method(Machine& machine, const Value& self, const Bound& arguments) {
  return brace_format(machine, self, Arguments{arguments.rest(), arguments.named_rest()});
}

Result<Value> format_map(Machine& machine, const Value& self, const Bound& arguments) {
  const Value& mapping = arguments.value(0);
  if (!mapping.is(Kind::kDict)) return type_error("format_map wants a dict", "dict", mapping);
  Arguments named;
  for (const auto& [key, value] : mapping.dict().entries) {
    if (key.is(Kind::kString)) named.named.emplace_back(key.text().bytes(), value);
  }
  return brace_format(machine, self, named);
}

// All characters are of the class, and there is one at least.
template <bool (*is_class)(char32_t)>
Result<Value> all_are(Machine&, const Value& self, const Bound&) {
  const std::string& bytes = self.text().bytes();
  for (size_t i = 0; i < bytes.size();) {
    const Character c = decode_at(bytes, i);
    if (!is_class(c.code_point)) return Value::boolean(false);
    i += c.size;
  }
  return Value::boolean(!bytes.empty());
}
Result<Value> isprintable(Machine& machine, const Value& self, const Bound& arguments) {
  if (self.text().empty()) return Value::boolean(true);
  return all_are<is_printable>(machine, self, arguments);
}
Result<Value> isascii(Machine&, const Value& self, const Bound&) {
  const std::string& bytes = self.text().bytes();
  return Value::boolean(std::all_of(bytes.begin(), bytes.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}
Result<Value> isidentifier(Machine&, const Value& self, const Bound&) {
  const std::string& bytes = self.text().bytes();
  bool valid = !bytes.empty();
  for (size_t i = 0; i < bytes.size() && valid;) {
    const Character c = decode_at(bytes, i);
    valid = c.code_point == '_' || is_alpha(c.code_point) || (i > 0 && is_decimal(c.code_point));
    i += c.size;
  }
  return Value::boolean(valid);
}

// islower() and isupper(): at least one cased character, and none of another case.
template <bool (*is_wanted)(char32_t)>
Result<Value> cased(Machine&, const Value& self, const Bound&) {
  return Value::boolean(is_in_case(self.text().bytes(), is_wanted));
}
Result<Value> istitle(Machine&, const Value& self, const Bound&) {
  const std::string& bytes = self.text().bytes();
  bool any = false;
  bool previous_cased = false;
  for (size_t i = 0; i < bytes.size();) {
    const Character c = decode_at(bytes, i);
    const bool starts = is_upper(c.code_point) || is_title(c.code_point);
    if (starts == previous_cased && is_cased(c.code_point)) return Value::boolean(false);
    previous_cased = is_cased(c.code_point);
    any |= previous_cased;
    i += c.size;
  }
  return Value::boolean(any);
}

constexpr Method kMethods[] = {
    {"capitalize", "", transformed<capitalize>},
    {"casefold", "", in_case<Case::kFold>},
    {"center", "_width _fill?", padded<Side::kBoth>},
    {"count", "_sub _start? _end?", count_method},
    {"endswith", "_suffix _start? _end?", has_affix<true>},
    {"expandtabs", "tabsize?", expandtabs},
    {"find", "_sub _start? _end?", find_method<false>},
    {"format", "* **", format_method},
    {"format_map", "_mapping", format_map},
    {"index", "_sub _start? _end?", index_method<false>},
    {"isalnum", "", all_are<is_alphanumeric>},
    {"isalpha", "", all_are<is_alpha>},
    {"isascii", "", isascii},
    {"isdecimal", "", all_are<is_decimal>},
    {"isdigit", "", all_are<is_digit>},
    {"isidentifier", "", isidentifier},
    {"islower", "", cased<is_lower>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isprintable", "", isprintable},
    {"isspace", "", all_are<is_space>},
    {"istitle", "", istitle},
    {"isupper", "", cased<is_upper>},
    {"join", "_iterable", join_method},
    {"ljust", "_width _fill?", padded<Side::kRight>},
    {"lower", "", in_case<Case::kLower>},
    {"lstrip", "_chars?", stripped<true, false>},
    {"partition", "_sep", partition<false>},
    {"removeprefix", "_prefix", without_affix<false>},
    {"removesuffix", "_suffix", without_affix<true>},
    {"replace", "_old _new _count?", replace_method},
    {"rfind", "_sub _start? _end?", find_method<true>},
    {"rindex", "_sub _start? _end?", index_method<true>},
    {"rjust", "_width _fill?", padded<Side::kLeft>},
    {"rpartition", "_sep", partition<true>},
    {"rsplit", "sep? maxsplit?", split_method<true>},
    {"rstrip", "_chars?", stripped<false, true>},
    {"split", "sep? maxsplit?", split_method<false>},
    {"splitlines", "keepends?", splitlines},
    {"startswith", "_prefix _start? _end?", has_affix<false>},
    {"strip", "_chars?", stripped<true, true>},
    {"swapcase", "", transformed<swap_case>},
    {"title", "", transformed<title_case>},
    {"upper", "", in_case<Case::kUpper>},
    {"zfill", "_width", zfill},
};

}  // namespace

std::span<const Method> string_methods() { return kMethods; }

}  // namespace espalier::text::jinja
