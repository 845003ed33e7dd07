#include "tests/units/emulated_sets.h"

namespace espalier::units::cpu {

std::span<const KernelSet* const> emulated_sets() {
  static constexpr const KernelSet* kSets[] = {&kEmulatedTileKernels};
  return kSets;
}

}  // namespace espalier::units::cpu
