#pragma once

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

extern const KernelSet kEmulatedTileKernels;

}  // namespace espalier::units::cpu
