// The float ("keep") product over the vector type V: a lane is an output, so there is no horizontal
// sum, and k runs in order. One kernel for every set. Semantics: linear.h.
#pragma once

#include "espalier/units/cpu/linear_operands.h"

namespace espalier::units::cpu {
namespace {

template <class V, WeightForm kForm>
V load_weights(const std::byte* p) {
  if constexpr (kForm == WeightForm::kFloat32) return V::load(reinterpret_cast<const float*>(p));
  if constexpr (kForm == WeightForm::kFloat16)
    return V::load_half(reinterpret_cast<const uint16_t*>(p));
  if constexpr (kForm == WeightForm::kBFloat16)
    return V::load_bfloat16(reinterpret_cast<const uint16_t*>(p));
}

template <WeightForm kForm>
inline constexpr int64_t kWeightLineBytes = kPanelOutputs*(kForm == WeightForm::kFloat32 ? 4 : 2);

template <class V, WeightForm kForm, int kRows>
void float_tile(const LinearLayout& weights, const ActivationLayout& x, int64_t first_row,
                int64_t panel, float* y, int64_t y_stride) {
  const std::byte* w = weights.panels + panel * weights.panel_bytes;
  const float* rows[kRows];
  V total[kRows];
  for (int r = 0; r < kRows; ++r) {
    rows[r] = reinterpret_cast<const float*>(x.records + (first_row + r) * x.record_bytes);
    total[r] = V::zero();
  }
  for (int64_t first = 0; first < weights.columns; first += kBlockElements) {
    const int64_t left = weights.columns - first;
    const int64_t last = first + (left < kBlockElements ? left : kBlockElements);
    V block[kRows];
    for (V& sum : block) sum = V::zero();
    for (int64_t k = first; k < last; ++k, w += kWeightLineBytes<kForm>) {
      const V weight = load_weights<V, kForm>(w);
      for (int r = 0; r < kRows; ++r) block[r] = fma(weight, V::broadcast(rows[r][k]), block[r]);
    }
    for (int r = 0; r < kRows; ++r) total[r] = total[r] + block[r];
  }
  const int64_t outputs = panel_outputs(weights, panel);
  for (int r = 0; r < kRows; ++r) {
    total[r].store_partial(y + (first_row + r) * y_stride + panel * kPanelOutputs, outputs);
  }
}

template <class V, WeightForm kForm>
void float_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                  int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  constexpr int64_t kTile = 4;
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    int64_t row = 0;
    for (; row + kTile <= row_count; row += kTile) {
      float_tile<V, kForm, kTile>(weights, x, row, panel, y, y_stride);
    }
    for (; row < row_count; ++row) float_tile<V, kForm, 1>(weights, x, row, panel, y, y_stride);
  }
}

template <class V>
void linear_floats(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                   int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto kernel = weights.form == WeightForm::kFloat32 ? float_panels<V, WeightForm::kFloat32>
                      : weights.form == WeightForm::kFloat16
                          ? float_panels<V, WeightForm::kFloat16>
                          : float_panels<V, WeightForm::kBFloat16>;
  kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
}

}  // namespace
}  // namespace espalier::units::cpu
