// The AVX-VNNI kernel set, for CPUs with byte products and no AVX-512 (Alder Lake and later): vpdpbusd as encoded by VEX.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/dot_unit_ymm.h"

namespace espalier::units::cpu {
namespace {

struct VexProducts : ByteProducts {
  static __m256i add(__m256i sums, __m256i weights, __m256i activations) {
    return _mm256_dpbusd_avx_epi32(sums, weights, activations);
  }
};

}  // namespace

constinit const KernelSet kAvxVnniKernels =
    kernel_set_of<YmmDots<VexProducts>>("avxvnni", cpu_has_avxvnni);

}  // namespace espalier::units::cpu
