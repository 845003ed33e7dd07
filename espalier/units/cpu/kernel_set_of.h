// A KernelSet from what differs between sets: the vector type, how activations are stored, and the integer products.
// Included by each kernels_<set>.cc; V differs between them, so no two files share an instantiation.
#pragma once

#include "espalier/units/cpu/attention_kernel.h"
#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/linear_float.h"
#include "espalier/units/cpu/linear_quantize.h"
#include "espalier/units/cpu/row_kernels.h"

namespace espalier::units::cpu {

using LinearFunction = void (*)(const LinearLayout& weights, const ActivationLayout& x,
                                int64_t row_count, int64_t first_panel, int64_t last_panel,
                                float* y, int64_t y_stride);

template <class V, LinearFunction kLinearIntegers>
void linear_panels(const PackedLinear& packed, const Activations& activations, int64_t row_count,
                   int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const ActivationLayout& x = activations.layout();
  const LinearFunction kernel = x.planes == 0 ? linear_floats<V> : kLinearIntegers;
  kernel(packed.layout(), x, row_count, first_panel, last_panel, y, y_stride);
}

template <class V, class Store>
void quantize_activations(const float* x, int64_t x_stride, int64_t first_row, int64_t row_count,
                          Activations& out) {
  quantize_rows_of<V, Store>(x, x_stride, first_row, row_count, out.layout());
}

template <class V, class Store, LinearFunction kLinearIntegers>
constexpr KernelSet kernel_set_of(std::string_view name, bool (*supported)()) {
  return {.name = name,
          .supported = supported,
          .quantize_rows = quantize_activations<V, Store>,
          .linear = linear_panels<V, kLinearIntegers>,
          .rms_norm = rms_norm_row<V>,
          .layer_norm = layer_norm_row<V>,
          .rope = rope_row<V>,
          .gated_silu = gated_silu_row<V>,
          .gelu = gelu_row<V>,
          .add = add_row<V>,
          .mul = mul_row<V>,
          .short_conv = short_conv_row<V>,
          .attention = attention_tile<V>,
          .to_half = to_half_row<V>};
}

}  // namespace espalier::units::cpu
