// The AVX-512 VNNI kernel set. Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_vnni.h"

namespace espalier::units::cpu {

constinit const KernelSet kAvx512VnniKernels =
    kernel_set_of<Vec16Avx512, StorePlanes, linear_integers>("avx512vnni", cpu_has_avx512vnni);

}  // namespace espalier::units::cpu
