// A KernelSet from a vector type and the three functions that are not templates over it alone.
// Included by each kernels_<set>.cc; V differs between them, so no two files share an
// instantiation.
#pragma once

#include "espalier/units/cpu/attention_kernel.h"
#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/row_kernels.h"

namespace espalier::units::cpu {

template <class V>
constexpr KernelSet kernel_set_of(std::string_view name, bool (*supported)(),
                                  decltype(KernelSet::quantize_rows) quantize_rows,
                                  decltype(KernelSet::linear) linear) {
  return {.name = name,
          .supported = supported,
          .quantize_rows = quantize_rows,
          .linear = linear,
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
