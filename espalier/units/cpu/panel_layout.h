// Where numbers lie in the panels of linear_layout.h, and how floats become int8 there: for the code that writes panels
// or makes layouts of its own. Not for kernels, in whose files nothing inline from outside may be instantiated
// (linear_layout.h says why).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "espalier/units/cpu/linear_layout.h"

namespace espalier::units::cpu {

constexpr int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

constexpr int64_t panels_of(int64_t outputs) {
  return round_up(outputs, kPanelOutputs) / kPanelOutputs;
}

// The byte of element k of the output in lane `lane` of a panel of int8, or of a group of one.
constexpr int64_t quant_index(int64_t k, int64_t lane) {
  return (k / kStepElements * kPanelOutputs + lane) * kStepElements + k % kStepElements;
}

// kInt8Channel: where the scale of a lane lies in its panel, and the size of a panel.
constexpr int64_t int8_scale_at(int64_t padded_columns, int64_t lane) {
  return padded_columns * kPanelOutputs + lane * int64_t{sizeof(float)};
}
constexpr int64_t int8_panel_bytes(int64_t padded_columns) {
  return int8_scale_at(padded_columns, kPanelOutputs);
}

// A denormal scale is so coarse that the quotient may exceed 127.
inline int8_t int8_of(float value, float scale) {
  if (scale == 0.0f) return 0;
  return static_cast<int8_t>(std::nearbyint(std::clamp(value / scale, -127.0f, 127.0f)));
}

}  // namespace espalier::units::cpu
