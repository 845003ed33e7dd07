#include <array>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

std::span<const KernelSet* const> all_kernel_sets() {
  static constexpr std::array<const KernelSet*, 4> kSets = {&kNeonI8mmKernels, &kNeonDotprodKernels,
                                                            &kSmeKernels, &kPortableKernels};
  return kSets;
}

}  // namespace espalier::units::cpu
