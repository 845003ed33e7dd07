// Integer products of a few rows with one panel at a time, for vector units that multiply bytes or 16-bit numbers and
// add neighbouring products (AVX2, AVX-VNNI, NEON). Semantics: linear.h.
//
// Unit is the instruction set:
//   Vector, Store           of the fp32 work; of the activations (linear_quantize.h)
//   kPlanes                 the store writes int8 planes, so that each is a factor of its own
//   kMaxRows<kPlanes>       rows of a tile: as many as have their sums in registers
//   kSignedBytes            weight bytes are multiplied less 128
//   Sums<kRows, kPlanes>    of 16 outputs and kRows rows, from 0: add_pair<kNibbles>(quants, values, k) adds two steps,
//                           finish<kRow>(correction) is a row's exact sums less `correction`, as fp32; Values is where
//                           the integers of the tile's rows lie: PlaneRows, or its own
//
// Order: panels, then tiles of rows, then K: a weight byte leaves DRAM once whatever the number of rows. int32 wraps,
// and the true sums fit.
#pragma once

#include <type_traits>

#include "espalier/units/cpu/kernel_set_of.h"
#include "espalier/units/cpu/linear_operands.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kPairElements = 2 * kStepElements;
constexpr int64_t kPairBytes = kPairElements * kPanelOutputs;  // of weights as bytes

// What the sums of a form are too large by, as a multiple of the sum of the activations.
template <class Unit, class Form>
constexpr int32_t zero_point() {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    return Unit::kSignedBytes ? 0 : 128;
  } else {
    return Form::kZeroPoint - (!Form::kNibbles && Unit::kSignedBytes ? 128 : 0);
  }
}

// The rows of a tile that are multiplied: of each row its planes, high first.
template <int kRows, int kPlanes>
struct PlaneRows {
  static constexpr int kCount = kRows * kPlanes;
  const std::byte* at[kCount];

  PlaneRows(const ActivationLayout& x, int64_t first_row) {
    const int64_t stride = kPlanes == 2 ? x.plane_bytes : x.record_bytes;
    for (int i = 0; i < kCount; ++i) at[i] = x.records + first_row * x.record_bytes + i * stride;
  }
};

template <class UnitOf, int kRowsOf, int kPlanesOf>
struct RowTile {
  using Unit = UnitOf;
  using V = typename Unit::Vector;
  using Sums = typename Unit::template Sums<kRowsOf, kPlanesOf>;
  static constexpr int kRows = kRowsOf;

  typename Sums::Values values;
  NextPanels next;
  ActivationRow row[kRows];
  V y[kRows];

  RowTile(const ActivationLayout& x, int64_t first_row, const NextPanels& next_panel)
      : values(x, first_row), next(next_panel) {
    for (int r = 0; r < kRows; ++r) {
      row[r] = activation_row(x, first_row + r);
      y[r] = V::zero();
    }
  }
};

// `kElements` k, from k on.
template <bool kNibbles, int64_t kElements, class Tile>
[[gnu::always_inline]] inline void add_elements(const std::byte* quants, const Tile& tile,
                                                int64_t k, typename Tile::Sums& sums) {
  constexpr int64_t kBytes = kNibbles ? kPairBytes / 2 : kPairBytes;
  unrolled<kElements / kPairElements>([&](auto pair) ESPALIER_INLINE {
    sums.template add_pair<kNibbles>(quants + pair * kBytes, tile.values, k + pair * kPairElements);
  });
}

template <class Tile>
void int8_rows(const LinearLayout& weights, const std::byte* panel, Tile& tile) {
  using V = typename Tile::V;
  int64_t k = 0;
  for (int64_t block = 0; k < weights.padded_columns; ++block) {
    const int64_t end = k + kBlockElements;
    const int64_t last = end < weights.padded_columns ? end : weights.padded_columns;
    typename Tile::Sums sums;
    for (; k < last; k += NextPanels::kElements) {
      tile.next.ask();
      add_elements<false, NextPanels::kElements>(panel + k * kPanelOutputs, tile, k, sums);
    }
    unrolled<Tile::kRows>([&](auto r) ESPALIER_INLINE {
      const ActivationRow& row = tile.row[r];
      const int32_t correction =
          row.block_sums[block] * zero_point<typename Tile::Unit, ChannelForm>();
      tile.y[r] =
          fma(sums.template finish<r>(correction), V::broadcast(row.scales[block]), tile.y[r]);
    });
  }
  const auto scales = V::load(reinterpret_cast<const float*>(panel + k * kPanelOutputs));
  for (V& y : tile.y) y = y * scales;
}

// One group whose record is at `record`: its sums, then fp32 into totals[row].
template <class Form, class Tile>
[[gnu::always_inline]] inline void add_group(const LinearLayout& weights, const std::byte* record,
                                             int64_t group, Tile& tile, typename Tile::V* totals) {
  using V = typename Tile::V;
  typename Tile::Sums sums;
  int64_t chunk = group * Form::kChunks;
  do {
    ask_for_chunk<Form>(chunk, tile.next);
    add_elements<Form::kNibbles, Form::kChunk>(record, tile, chunk * Form::kChunk, sums);
    record += Form::kChunkBytes;
    ++chunk;
  } while (chunk < (group + 1) * Form::kChunks);
  const std::byte* const scales_at[1] = {record};
  V scale[1], offset[1];
  load_scales<Form>(weights.scales, scales_at, scale, offset);
  unrolled<Tile::kRows>([&](auto r) ESPALIER_INLINE {
    const int32_t sum = group_sum<Form>(tile.row[r], group);
    const int32_t correction = sum * zero_point<typename Tile::Unit, Form>();
    totals[r] = fma(scale[0], sums.template finish<r>(correction), totals[r]);
    if constexpr (Form::kOffsets)
      totals[r] = fma(offset[0], V::broadcast(static_cast<float>(sum)), totals[r]);
  });
}

template <class Form, class Tile>
void group_rows(const LinearLayout& weights, const std::byte* record, Tile& tile) {
  using V = typename Tile::V;
  constexpr int64_t kBlockGroups = kBlockElements / Form::kElements;
  const int64_t groups = weights.padded_columns / Form::kElements;
  for (int64_t group = 0, block = 0; group < groups; ++block) {
    const int64_t end = group + kBlockGroups, last = end < groups ? end : groups;
    V totals[Tile::kRows];
    for (V& total : totals) total = V::zero();
    for (; group < last; ++group, record += group_bytes<Form>(weights)) {
      add_group<Form>(weights, record, group, tile, totals);
    }
    for (int r = 0; r < Tile::kRows; ++r) {
      tile.y[r] = fma(totals[r], V::broadcast(tile.row[r].scales[block]), tile.y[r]);
    }
  }
}

// Form: ChannelForm or a GroupForm.
template <class Form, class Tile>
void compute_rows(const LinearLayout& weights, const ActivationLayout& x, int64_t first_row,
                  int64_t panel, const NextPanels& next, float* y, int64_t y_stride) {
  Tile tile(x, first_row, next);
  const std::byte* bytes = weights.panels + panel * weights.panel_bytes;
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    int8_rows(weights, bytes, tile);
  } else {
    group_rows<Form>(weights, bytes, tile);
  }
  for (int r = 0; r < Tile::kRows; ++r) {
    tile.y[r].store_partial(y + (first_row + r) * y_stride + panel * kPanelOutputs,
                            panel_outputs(weights, panel));
  }
}

using RowsFunction = void (*)(const LinearLayout&, const ActivationLayout&, int64_t first_row,
                              int64_t panel, const NextPanels& next, float* y, int64_t y_stride);

// The function for `rows` rows, 1..kMaxRows.
template <class Unit, class Form, int kPlanes, int kRows = Unit::template kMaxRows<kPlanes>>
RowsFunction rows_function(int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return rows_function<Unit, Form, kPlanes, kRows - 1>(rows);
  }
  return compute_rows<Form, RowTile<Unit, kRows, kPlanes>>;
}

template <class Unit, class Form, int kPlanes>
void row_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  constexpr int kMaxRows = Unit::template kMaxRows<kPlanes>;
  const int64_t tiles = (row_count + kMaxRows - 1) / kMaxRows;
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    // Rows are spread evenly, so that there is no tile of one row among others.
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = row_count * tile / tiles, last = row_count * (tile + 1) / tiles;
      const NextPanels next = tiles == 1 ? NextPanels(weights, panel)
                              : panel + 1 < last_panel
                                  ? NextPanels(weights, panel + 1, 1, tile, tiles)
                                  : NextPanels();
      rows_function<Unit, Form, kPlanes>(last - first)(weights, x, first, panel, next, y, y_stride);
    }
  }
}

template <class Unit>
void linear_rows(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                 int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    const auto kernel = Unit::kPlanes && x.planes == 2 ? row_panels < Unit, Form,
               Unit::kPlanes ? 2 : 1 > : row_panels<Unit, Form, 1>;
    kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
  });
}

}  // namespace

// The set of a unit.
template <class Unit>
constexpr KernelSet kernel_set_of(std::string_view name, bool (*supported)()) {
  return kernel_set_of<typename Unit::Vector, typename Unit::Store, linear_rows<Unit>>(name,
                                                                                       supported);
}

}  // namespace espalier::units::cpu
