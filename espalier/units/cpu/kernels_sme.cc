// The SME kernel set: matrix tiles for int8 per channel, NEON matrix products for groups, whose sums would leave the
// streaming mode after every 32 k. By name alone until somebody has measured it.
// Built with ISA flags: no standard containers, no inline functions shared with other files.
#include "espalier/units/cpu/dot_unit_i8mm.h"
#include "espalier/units/cpu/linear_tiles.h"
#include "espalier/units/cpu/tile_unit_sme.h"

namespace espalier::units::cpu {
namespace {

struct Sme {};

void linear_sme(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto kernel = weights.form == WeightForm::kInt8Channel
                          ? tile_panels<SmeTiles, Vec16Neon<Sme>, ChannelForm>
                          : linear_rows<I8mmDots<Sme>>;
  kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
}

}  // namespace

constinit const KernelSet kSmeKernels =
    kernel_set_of<Vec16Neon<Sme>, StorePlanes, linear_sme>("sme", cpu_has_sme);

}  // namespace espalier::units::cpu
