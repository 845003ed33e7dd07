#include <array>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

// The checks live here, in code built for the baseline, so that asking cannot itself need the instructions.
bool cpu_has_avx2() {  // every CPU with AVX2 and FMA has F16C
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool cpu_has_avx512vnni() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

std::span<const KernelSet* const> all_kernel_sets() {
  static constexpr std::array<const KernelSet*, 3> kSets = {&kAvx512VnniKernels, &kAvx2Kernels,
                                                            &kPortableKernels};
  return kSets;
}

}  // namespace espalier::units::cpu
