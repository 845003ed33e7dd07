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
    dequantize(view.encoding, view.row(0), values);
    dequantize(view.encoding, view.row(view.rows() - 1), values);
  }
}

}  // namespace espalier
