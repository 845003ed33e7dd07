// What sysctl(3) says; the names are Apple's ("Determining Instruction Set Characteristics"). Has not run on a Mac yet.
#include <sys/sysctl.h>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {
namespace {

int number_of(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

}  // namespace

bool cpu_has_neon_dotprod() { return number_of("hw.optional.arm.FEAT_DotProd") != 0; }

bool cpu_has_neon_i8mm() { return number_of("hw.optional.arm.FEAT_I8MM") != 0; }

bool cpu_has_sme() {
  return cpu_has_neon_i8mm() && number_of("hw.optional.arm.FEAT_SME") != 0 &&
         number_of("hw.optional.arm.SME_I8I32") != 0 &&
         number_of("hw.optional.arm.sme_max_svl_b") == 64;
}

}  // namespace espalier::units::cpu
