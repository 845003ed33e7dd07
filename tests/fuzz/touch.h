// Reads the first and the last row of every tensor that a reader accepted.
#pragma once

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "espalier/base/check.h"
#include "espalier/base/dequantize.h"
#include "espalier/base/weights.h"

namespace espalier {

inline void touch(const std::map<std::string, TensorView>& tensors) {
  for (const auto& [name, view] : tensors) {
    if (view.bytes.empty()) continue;
    CHECK_EQ(static_cast<int64_t>(view.bytes.size()), view.rows() * view.row_bytes());
    std::vector<float> values(static_cast<size_t>(view.columns()));
    dequantize(view.row_range(0, 1), values);
    dequantize(view.row_range(view.rows() - 1, 1), values);
  }
}

}  // namespace espalier
