// What the kernel says in the auxiliary vector (Documentation/arch/arm64/elf_hwcaps.rst of Linux).
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

bool cpu_has_neon_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

bool cpu_has_neon_i8mm() {
  return cpu_has_neon_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}

}  // namespace espalier::units::cpu
