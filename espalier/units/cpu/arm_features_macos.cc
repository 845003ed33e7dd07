// What sysctl(3) says; the names are Apple's ("Determining Instruction Set Characteristics"). Has not run on a Mac yet.
#include <sys/sysctl.h>

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {
namespace {

bool has(const char* feature) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(feature, &value, &size, nullptr, 0) == 0 && value != 0;
}

}  // namespace

bool cpu_has_neon_dotprod() { return has("hw.optional.arm.FEAT_DotProd"); }

bool cpu_has_neon_i8mm() { return has("hw.optional.arm.FEAT_I8MM"); }

}  // namespace espalier::units::cpu
