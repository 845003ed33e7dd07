// The kernels of matrix-tile units on an emulated unit: tested where there is no AMX.
#include "espalier/base/vec16.h"
#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_tiles.h"
#include "espalier/units/cpu/tile_unit_emulated.h"
#include "tests/units/emulated_sets.h"

namespace espalier::units::cpu {
namespace {

void linear_emulated(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                     int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    tile_panels<EmulatedTiles, Vec16, Form>(weights, x, row_count, first_panel, last_panel, y,
                                            y_stride);
  });
}

bool always() { return true; }

}  // namespace

constinit const KernelSet kEmulatedTileKernels =
    kernel_set_of<Vec16, StorePlanes, linear_emulated>("emulated tiles", always);

}  // namespace espalier::units::cpu
