// The AVX-512 VNNI kernel set. Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_vnni.h"

namespace espalier::units::cpu {
namespace {

void linear_vnni(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                 int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    integer_planes<Form>(weights, x, row_count, first_panel, last_panel, y, y_stride);
  });
}

}  // namespace

constinit const KernelSet kAvx512VnniKernels =
    kernel_set_of<Vec16Avx512, StorePlanes, linear_vnni>("avx512vnni", cpu_has_avx512vnni);

}  // namespace espalier::units::cpu
