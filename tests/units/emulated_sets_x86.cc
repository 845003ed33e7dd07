// The kernels of AVX-VNNI with its instruction put together from those of AVX2: tested on CPUs that have neither AVX-VNNI
// nor AVX-512.
#include "espalier/units/cpu/dot_unit_ymm.h"
#include "tests/units/emulated_sets.h"

namespace espalier::units::cpu {
namespace {

struct EmulatedProducts : ByteProducts {
  static __m256i add(__m256i sums, __m256i weights, __m256i activations) {
    const __m256i even_w = _mm256_and_si256(weights, _mm256_set1_epi16(0xff));
    const __m256i odd_w = _mm256_srli_epi16(weights, 8);
    const __m256i even_a = _mm256_srai_epi16(_mm256_slli_epi16(activations, 8), 8);
    const __m256i odd_a = _mm256_srai_epi16(activations, 8);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(even_w, even_a));
    return _mm256_add_epi32(sums, _mm256_madd_epi16(odd_w, odd_a));
  }
};

bool always() { return true; }  // the baseline has AVX2

constinit const KernelSet kEmulatedProductKernels =
    kernel_set_of<YmmDots<EmulatedProducts>>("emulated byte products", always);

}  // namespace

std::span<const KernelSet* const> emulated_sets() {
  static constexpr const KernelSet* kSets[] = {&kEmulatedTileKernels, &kEmulatedProductKernels};
  return kSets;
}

}  // namespace espalier::units::cpu
