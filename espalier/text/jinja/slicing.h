// Python's slices: x[start:stop:step] resolved for a length. Pure.
#pragma once

#include <cstdint>

#include "espalier/text/jinja/value.h"

namespace espalier::text::jinja {

struct SliceBounds {
  int64_t start = 0, stop = 0, step = 1;
  int64_t count = 0;  // elements start, start + step, ... before stop
};

// Each bound may be none.
Result<SliceBounds> resolve_slice(int64_t length, const Value& start, const Value& stop,
                                  const Value& step);
// value[start:stop:step], for strings (by characters), lists, tuples and ranges.
Result<Value> slice(Budget& budget, const Value& value, const Value& start, const Value& stop,
                    const Value& step);
// Characters of the text in the order of the slice.
Text slice_text(const Text& text, const SliceBounds& bounds);

}  // namespace espalier::text::jinja
