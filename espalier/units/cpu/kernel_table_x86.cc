#include <cpuid.h>

#include <array>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {

// The checks live here, in code built for the baseline, so that asking cannot itself need the instructions.
bool cpu_has_avx2() {  // every CPU with AVX2 and FMA has F16C
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool cpu_has_avxvnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1u << 4;  // leaf 7.1, EAX; g++ 12 knows no name for it
  return cpu_has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

bool cpu_has_avx512vnni() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
}

// Tile registers are large, so Linux gives them only to a process that asks (arch_prctl(2)).
bool cpu_has_amx() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool kAllowed = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmxTile = 1u << 24, kAmxInt8 = 1u << 25;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxTile) != 0 &&
           (d & kAmxInt8) != 0 && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return kAllowed && cpu_has_avx512vnni();
#else
  return false;
#endif
}

std::span<const KernelSet* const> all_kernel_sets() {
  static constexpr std::array<const KernelSet*, 6> kSets = {&kAmxKernels,      &kAvx512VnniKernels,
                                                            &kAvx512VlKernels, &kAvxVnniKernels,
                                                            &kAvx2Kernels,     &kPortableKernels};
  return kSets;
}

}  // namespace espalier::units::cpu
