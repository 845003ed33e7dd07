// The AVX2 kernel set. Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_avx2.h"

namespace espalier::units::cpu {

constinit const KernelSet kAvx2Kernels =
    kernel_set_of<Vec16Avx2, StoreInt16, linear_integers>("avx2", cpu_has_avx2);

}  // namespace espalier::units::cpu
