// The AMX kernel set: matrix tiles where rows are many enough to pay for them, else AVX-512 VNNI.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_tiles.h"
#include "espalier/units/cpu/linear_vnni.h"
#include "espalier/units/cpu/tile_unit_amx.h"

namespace espalier::units::cpu {
namespace {

// Rows from which tiles are faster, in cache: int8 always (measured on Sapphire Rapids; groups need
// fp32 work for every group, which tiles only pay for when they are nearly full).
template <class Form>
constexpr int64_t min_tile_rows() {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    return 1;
  } else {
    return Form::kChunk >= 32 ? 5 : 8;
  }
}

void linear_amx(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    const auto kernel = row_count < min_tile_rows<Form>()
                            ? integer_planes<Form>
                            : tile_panels<AmxTiles, Vec16Avx512, Form>;
    kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
  });
}

}  // namespace

constinit const KernelSet kAmxKernels =
    kernel_set_of<Vec16Avx512, StorePlanes, linear_amx>("amx", cpu_has_amx);

}  // namespace espalier::units::cpu
