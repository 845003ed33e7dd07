// What the kernel says in the auxiliary vector (Documentation/arch/arm64/elf_hwcaps.rst of Linux).
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

bool cpu_has_neon_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

bool cpu_has_neon_i8mm() {
  return cpu_has_neon_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
}

bool cpu_has_sme() {
  constexpr unsigned long kSme = 1ul << 23,
                          kSmeI8I32 = 1ul << 26;  // HWCAP2_*; old headers lack them
  if (!cpu_has_neon_i8mm() || (getauxval(AT_HWCAP2) & kSme) == 0 ||
      (getauxval(AT_HWCAP2) & kSmeI8I32) == 0) {
    return false;
  }
  int64_t register_bytes = 0;
  asm(".arch armv8.2-a+sme\n\trdsvl %0, #1" : "=r"(register_bytes));
  return register_bytes == 64;
}

}  // namespace espalier::units::cpu
