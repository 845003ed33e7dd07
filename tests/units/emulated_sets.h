// Kernel sets whose instructions are put together from ordinary ones, so that their kernels are tested on every machine.
#pragma once

#include <span>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

extern const KernelSet kEmulatedTileKernels;

// All of them: emulated_sets_<architecture>.cc.
std::span<const KernelSet* const> emulated_sets();

}  // namespace espalier::units::cpu
