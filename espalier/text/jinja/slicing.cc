#include "espalier/text/jinja/slicing.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

Result<int64_t> bound_or(const Value& value, int64_t fallback) {
  if (value.is(Kind::kNone)) return fallback;
  if (!value.is_integral()) return type_error("a slice has a wrong bound", "int or none", value);
  return value.integer();
}

// A bound counted from the end where negative, and clipped to [low, high].
int64_t clip(int64_t bound, int64_t length, int64_t low, int64_t high) {
  if (bound < 0) bound += length;  // bound < 0 <= length: no overflow
  return std::clamp(bound, low, high);
}

}  // namespace

Result<SliceBounds> resolve_slice(int64_t length, const Value& start, const Value& stop,
                                  const Value& step) {
  SliceBounds bounds;
  ASSIGN_OR_RETURN(bounds.step, bound_or(step, 1));
  if (bounds.step == 0) {
    return Error{.what = "a slice has step 0",
                 .expected = "another number",
                 .actual = "0",
                 .fix = "Correct the template."};
  }
  const bool forward = bounds.step > 0;
  bounds.step = std::clamp<int64_t>(bounds.step, -INT64_MAX, INT64_MAX);
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? length : length - 1;
  ASSIGN_OR_RETURN(const int64_t first, bound_or(start, 0));
  ASSIGN_OR_RETURN(const int64_t last, bound_or(stop, 0));
  bounds.start = start.is(Kind::kNone) ? (forward ? low : high) : clip(first, length, low, high);
  bounds.stop = stop.is(Kind::kNone) ? (forward ? high : low) : clip(last, length, low, high);
  const int64_t span = forward ? bounds.stop - bounds.start : bounds.start - bounds.stop;
  const int64_t stride = forward ? bounds.step : -bounds.step;
  bounds.count = span > 0 ? (span - 1) / stride + 1 : 0;
  return bounds;
}

Text slice_text(const Text& text, const SliceBounds& bounds) {
  if (bounds.count <= 0) return Text();
  const std::string& bytes = text.bytes();
  if (bounds.step == 1) {
    const size_t begin = byte_offset(bytes, static_cast<size_t>(bounds.start));
    const std::string_view rest = std::string_view(bytes).substr(begin);
    return text.substr(begin, begin + byte_offset(rest, static_cast<size_t>(bounds.count)));
  }
  std::vector<size_t> offsets;
  for (size_t i = 0; i < bytes.size(); i += decode_at(bytes, i).size) offsets.push_back(i);
  offsets.push_back(bytes.size());
  Text result;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const auto at = static_cast<size_t>(bounds.start + i * bounds.step);
    const std::string_view character =
        std::string_view(bytes).substr(offsets[at], offsets[at + 1] - offsets[at]);
    result.append(character, text.from_user(offsets[at]));
  }
  return result;
}

Result<Value> slice(Budget& budget, const Value& value, const Value& start, const Value& stop,
                    const Value& step) {
  RETURN_IF_ERROR(budget.spend(value.shallow_bytes()));
  if (value.is(Kind::kString)) {
    RETURN_IF_ERROR(budget.spend(value.text().size(), sizeof(size_t)));
    const auto length = static_cast<int64_t>(code_point_count(value.text().bytes()));
    ASSIGN_OR_RETURN(const SliceBounds bounds, resolve_slice(length, start, stop, step));
    return Value::string(slice_text(value.text(), bounds), value.is_markup());
  }
  if (value.is(Kind::kRange)) {
    const Range& range = value.range();
    ASSIGN_OR_RETURN(const SliceBounds bounds, resolve_slice(range.length(), start, stop, step));
    // In 128 bits: the ends of a slice may lie outside of what the range reaches.
    const auto at = [&](__int128 index) {
      const __int128 number = range.start + index * range.step;
      return static_cast<int64_t>(std::clamp<__int128>(number, -INT64_MAX, INT64_MAX));
    };
    const __int128 stride = static_cast<__int128>(range.step) * bounds.step;
    return Value::range(at(bounds.start), at(bounds.stop),
                        static_cast<int64_t>(std::clamp<__int128>(stride, -INT64_MAX, INT64_MAX)));
  }
  if (!value.is_array())
    return type_error("this value cannot be sliced", "a string or a list", value);
  const Values& items = value.items();
  ASSIGN_OR_RETURN(const SliceBounds bounds,
                   resolve_slice(static_cast<int64_t>(items.size()), start, stop, step));
  Values part;
  for (int64_t i = 0; i < bounds.count; ++i) {
    part.push_back(items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return value.is(Kind::kList) ? Value::list(std::move(part)) : Value::tuple(std::move(part));
}

}  // namespace espalier::text::jinja
