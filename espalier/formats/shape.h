// Shapes from files: sizes that are checked before anybody multiplies them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "espalier/base/dtype.h"

namespace espalier::formats {

// Bytes of a tensor of `shape` (outermost first), or nothing where a product does not fit an
// int64_t (zeros count as ones there, so that every partial product of a returned shape is safe) or
// where the innermost extent is not a whole number of blocks.
std::optional<int64_t> tensor_bytes(Encoding encoding, std::span<const int64_t> shape);

}  // namespace espalier::formats
