// The NEON kernel set for CPUs with matrix products of bytes (FEAT_I8MM).
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/dot_unit_i8mm.h"

namespace espalier::units::cpu {
namespace {

struct NeonI8mm {};

}  // namespace

constinit const KernelSet kNeonI8mmKernels =
    kernel_set_of<I8mmDots<NeonI8mm>>("i8mm", cpu_has_neon_i8mm);

}  // namespace espalier::units::cpu
