// The AVX2 kernel set. Built with ISA flags: no standard containers, no inline functions shared
// with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_avx2.h"
#include "espalier/units/cpu/linear_float.h"
#include "espalier/units/cpu/linear_quantize.h"

namespace espalier::units::cpu {
namespace {

void linear(const PackedLinear& packed, const Activations& activations, int64_t row_count,
            int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto kernel = activations.layout().planes == 0 ? linear_floats<Vec16Avx2> : linear_integers;
  kernel(packed.layout(), activations.layout(), row_count, first_panel, last_panel, y, y_stride);
}

void quantize_rows(const float* x, int64_t x_stride, int64_t first_row, int64_t row_count,
                   Activations& out) {
  quantize_rows_of<Vec16Avx2, StoreInt16>(x, x_stride, first_row, row_count, out.layout());
}

}  // namespace

constinit const KernelSet kAvx2Kernels =
    kernel_set_of<Vec16Avx2>("avx2", cpu_has_avx2, quantize_rows, linear);

}  // namespace espalier::units::cpu
