#include "espalier/formats/shape.h"

#include <algorithm>

namespace espalier::formats {

std::optional<int64_t> tensor_bytes(Encoding encoding, std::span<const int64_t> shape) {
  const auto& info = encoding_info(encoding);
  const int64_t columns = shape.empty() ? 1 : shape.back();
  if (columns % info.block_elements != 0) return std::nullopt;
  int64_t bytes_bound = info.block_bytes;  // with zeros taken as ones and blocks as elements
  bool is_empty = false;
  for (const int64_t extent : shape) {
    is_empty |= extent == 0;
    if (extent < 0 ||
        __builtin_mul_overflow(bytes_bound, std::max<int64_t>(extent, 1), &bytes_bound)) {
      return std::nullopt;
    }
  }
  return is_empty ? 0 : bytes_bound / info.block_elements;
}

}  // namespace espalier::formats
