// The kernels of AVX-VNNI in the encoding of AVX-512, on the same 256-bit registers. Chosen by name alone: it is how they
// are compared with 512-bit ones, and how they run on a CPU that has AVX-512 instead of AVX-VNNI.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/dot_unit_ymm.h"

namespace espalier::units::cpu {
namespace {

struct EvexProducts : ByteProducts {
  static __m256i add(__m256i sums, __m256i weights, __m256i activations) {
    return _mm256_dpbusd_epi32(sums, weights, activations);
  }
};

}  // namespace

constinit const KernelSet kAvx512VlKernels =
    kernel_set_of<YmmDots<EvexProducts>>("avx512vl", cpu_has_avx512vnni);

}  // namespace espalier::units::cpu
