// Integer products for AVX-512 VNNI: vpdpbusd of unsigned weight bytes with signed activation
// planes, which are just more rows: value = 256 * high + low. The zero point of the weights is
// undone with the sum of the activations: int32 arithmetic wraps, and the true sum fits. Semantics:
// linear.h.
//
// A tile is kRows rows x kPanels panels whose sums stay in registers while K is walked once. One or
// two rows read memory faster with one sequential stream, so they take one panel and split each sum
// in two to hide latency. Order: panels, then tiles of rows, then K: a weight byte leaves DRAM once
// whatever the number of rows.
#pragma once

#include "espalier/units/cpu/linear_operands.h"
#include "espalier/units/cpu/vec16_avx512.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kStepBytes = kPanelOutputs * kStepElements;  // one register

template <int kRowsOf, int kPlanesOf>
struct TileShape {
  static constexpr int kRows = kRowsOf;
  static constexpr int kPlanes = kPlanesOf;
  static constexpr int kPanels = kRows <= 2 ? 1 : 2;
  static constexpr int kSplit = kRows <= 2 ? 2 : 1;  // sums of even and odd steps apart
};

template <class Shape>
struct Sums {
  __m512i sum[Shape::kSplit][Shape::kPanels][Shape::kPlanes][Shape::kRows];
};

// What a tile reads and the fp32 results it grows.
template <class Shape>
struct Tile {
  const std::byte* panel[Shape::kPanels];
  const std::byte* values;  // of the first row, first plane
  int64_t record_bytes, plane_bytes;
  ActivationRow row[Shape::kRows];
  __m512 y[Shape::kPanels][Shape::kRows];
};

[[gnu::always_inline]] inline __m512i broadcast_step(const std::byte* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  return _mm512_set1_epi32(four);
}

template <class Shape>
[[gnu::always_inline]] inline void clear(Sums<Shape>& sums) {
#pragma GCC unroll 4
  for (auto& split : sums.sum) {
#pragma GCC unroll 4
    for (auto& panel : split) {
#pragma GCC unroll 4
      for (auto& plane : panel) {
#pragma GCC unroll 8
        for (__m512i& sum : plane) sum = _mm512_setzero_si512();
      }
    }
  }
}

// One step of 4 k for every row and plane; `values` are the first row's.
template <class Shape>
[[gnu::always_inline]] inline void add_step(const Tile<Shape>& tile, const __m512i* weights,
                                            const std::byte* values, int split, Sums<Shape>& sums) {
#pragma GCC unroll 4
  for (int plane = 0; plane < Shape::kPlanes; ++plane) {
#pragma GCC unroll 8
    for (int row = 0; row < Shape::kRows; ++row) {
      const __m512i a = broadcast_step(values + row * tile.record_bytes + plane * tile.plane_bytes);
#pragma GCC unroll 4
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        __m512i& sum = sums.sum[split][panel][plane][row];
        sum = _mm512_dpbusd_epi32(sum, weights[panel], a);
      }
    }
  }
}

// Two steps (8 k): quants at quants[panel] + offset.
template <bool kNibbles, class Shape>
[[gnu::always_inline]] inline void add_step_pair(const Tile<Shape>& tile,
                                                 const std::byte* const* quants, int64_t offset,
                                                 const std::byte* values, Sums<Shape>& sums) {
  __m512i even[Shape::kPanels], odd[Shape::kPanels];
#pragma GCC unroll 4
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    const std::byte* p = quants[panel] + offset;
    even[panel] = _mm512_loadu_si512(p);
    if constexpr (kNibbles) {
      const __m512i low = _mm512_set1_epi8(0xf);
      odd[panel] = _mm512_and_si512(_mm512_srli_epi16(even[panel], 4), low);
      even[panel] = _mm512_and_si512(even[panel], low);
    } else {
      odd[panel] = _mm512_loadu_si512(p + kStepBytes);
    }
  }
  add_step(tile, even, values, 0, sums);
  add_step(tile, odd, values + kStepElements, Shape::kSplit - 1, sums);
}

// The exact sum of one row and panel, less `correction`, as fp32.
template <class Shape>
[[gnu::always_inline]] inline __m512 finish(const Sums<Shape>& sums, int panel, int row,
                                            __m512i correction) {
  __m512i plane_sum[Shape::kPlanes];
#pragma GCC unroll 4
  for (int plane = 0; plane < Shape::kPlanes; ++plane) {
    plane_sum[plane] = sums.sum[0][panel][plane][row];
    if constexpr (Shape::kSplit == 2) {
      plane_sum[plane] = _mm512_add_epi32(plane_sum[plane], sums.sum[1][panel][plane][row]);
    }
  }
  __m512i sum = plane_sum[0];
  if constexpr (Shape::kPlanes == 2)
    sum = _mm512_add_epi32(_mm512_slli_epi32(plane_sum[0], 8), plane_sum[1]);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, correction));
}

template <class Shape>
void int8_tile(const LinearLayout& weights, Tile<Shape>& tile) {
  const std::byte* values = tile.values;
  int64_t offset = 0;  // in the panels
  for (int64_t block = 0; block * kBlockElements < weights.padded_columns; ++block) {
    const int64_t left = weights.padded_columns - block * kBlockElements;
    const int64_t count = left < kBlockElements ? left : kBlockElements;
    const std::byte* end = values + count;
    Sums<Shape> sums;
    clear(sums);
    for (; values != end; values += 2 * kStepElements, offset += 2 * kStepBytes) {
      add_step_pair<false>(tile, tile.panel, offset, values, sums);
    }
#pragma GCC unroll 8
    for (int row = 0; row < Shape::kRows; ++row) {
      const __m512i correction = _mm512_set1_epi32(tile.row[row].block_sums[block] * 128);
      const __m512 scale = _mm512_set1_ps(tile.row[row].scales[block]);
#pragma GCC unroll 4
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        tile.y[panel][row] =
            _mm512_fmadd_ps(finish(sums, panel, row, correction), scale, tile.y[panel][row]);
      }
    }
  }
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    const __m512 scales = _mm512_loadu_ps(tile.panel[panel] + offset);
    for (__m512& y : tile.y[panel]) y = _mm512_mul_ps(y, scales);
  }
}

// One group: its sums, then fp32 into `totals`. `offset` is where its record starts in the panels.
template <class Form, class Shape>
[[gnu::always_inline]] inline void add_group(const LinearLayout& weights, const Tile<Shape>& tile,
                                             int64_t group, int64_t offset,
                                             __m512 (*totals)[Shape::kRows]) {
  Sums<Shape> sums;
  clear(sums);
  const std::byte* values = tile.values + group * Form::kElements;
#pragma GCC unroll 4
  for (int pair = 0; pair < Form::kElements / (2 * kStepElements); ++pair) {
    add_step_pair<Form::kNibbles>(tile, tile.panel,
                                  offset + pair * kStepBytes * (Form::kNibbles ? 1 : 2),
                                  values + pair * 2 * kStepElements, sums);
  }
  const int64_t scales_at = offset + Form::kQuantBytes;
  const int64_t offsets_at = scales_at + scales_bytes<Form>(weights);
#pragma GCC unroll 4
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    const std::byte* record = tile.panel[panel];
    const __m512 scale = load_scales<Vec16Avx512>(record + scales_at, weights.wide_scales).value;
#pragma GCC unroll 8
    for (int row = 0; row < Shape::kRows; ++row) {
      const __m512i sum = _mm512_set1_epi32(group_sums<Form>(tile.row[row])[group]);
      const __m512i correction = Form::kZeroPoint == 0
                                     ? _mm512_setzero_si512()
                                     : _mm512_slli_epi32(sum, Form::kZeroPoint == 8 ? 3 : 7);
      __m512& total = totals[panel][row];
      total = _mm512_fmadd_ps(scale, finish(sums, panel, row, correction), total);
      if constexpr (Form::kOffsets) {
        const __m512 shift =
            load_scales<Vec16Avx512>(record + offsets_at, weights.wide_scales).value;
        total = _mm512_fmadd_ps(shift, _mm512_cvtepi32_ps(sum), total);
      }
    }
  }
}

template <class Form, class Shape>
void group_tile(const LinearLayout& weights, Tile<Shape>& tile) {
  const int64_t record_bytes = group_bytes<Form>(weights);
  const int64_t groups = weights.padded_columns / Form::kElements;
  constexpr int64_t kBlockGroups = kBlockElements / Form::kElements;
  int64_t offset = 0;
  for (int64_t block = 0; block * kBlockGroups < groups; ++block) {
    const int64_t end = (block + 1) * kBlockGroups, last = end < groups ? end : groups;
    __m512 totals[Shape::kPanels][Shape::kRows];
#pragma GCC unroll 4
    for (auto& panel : totals) {
#pragma GCC unroll 8
      for (__m512& total : panel) total = _mm512_setzero_ps();
    }
    for (int64_t group = block * kBlockGroups; group < last; ++group, offset += record_bytes) {
      add_group<Form>(weights, tile, group, offset, totals);
    }
    for (int row = 0; row < Shape::kRows; ++row) {
      const __m512 scale = _mm512_set1_ps(tile.row[row].scales[block]);
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        tile.y[panel][row] = _mm512_fmadd_ps(totals[panel][row], scale, tile.y[panel][row]);
      }
    }
  }
}

// Form: a GroupForm, or void for int8 per channel. Computes panels `panel` and, with two,
// `second_panel`.
template <class Form, class Shape>
void compute_tile(const LinearLayout& weights, const ActivationLayout& x, int64_t first_row,
                  int64_t panel, int64_t second_panel, float* y, int64_t y_stride) {
  const int64_t panels[2] = {panel, second_panel};
  Tile<Shape> tile;
  tile.values = activation_row(x, first_row).values;
  tile.record_bytes = x.record_bytes;
  tile.plane_bytes = x.plane_bytes;
  for (int row = 0; row < Shape::kRows; ++row) tile.row[row] = activation_row(x, first_row + row);
  for (int i = 0; i < Shape::kPanels; ++i) {
    tile.panel[i] = weights.panels + panels[i] * weights.panel_bytes;
    for (__m512& sum : tile.y[i]) sum = _mm512_setzero_ps();
  }
  if constexpr (std::is_void_v<Form>) {
    int8_tile(weights, tile);
  } else {
    group_tile<Form>(weights, tile);
  }
  for (int i = 0; i < Shape::kPanels; ++i) {
    const auto mask = static_cast<__mmask16>((1u << panel_outputs(weights, panels[i])) - 1);
    for (int row = 0; row < Shape::kRows; ++row) {
      _mm512_mask_storeu_ps(y + (first_row + row) * y_stride + panels[i] * kPanelOutputs, mask,
                            tile.y[i][row]);
    }
  }
}

using TileFunction = void (*)(const LinearLayout&, const ActivationLayout&, int64_t first_row,
                              int64_t panel, int64_t second_panel, float* y, int64_t y_stride);

// Tile functions by number of rows, 1..kMaxRows.
template <class Form, int kPlanes>
struct TileTable {
  // int8 holds its fp32 results in memory (used once in 512 k), groups in registers.
  static constexpr int kMaxRows = std::is_void_v<Form> ? 6 : 4;
  static constexpr TileFunction kFunctions[] = {
      compute_tile<Form, TileShape<1, kPlanes>>, compute_tile<Form, TileShape<2, kPlanes>>,
      compute_tile<Form, TileShape<3, kPlanes>>, compute_tile<Form, TileShape<4, kPlanes>>,
      compute_tile<Form, TileShape<5, kPlanes>>, compute_tile<Form, TileShape<6, kPlanes>>};
};

template <class Form, int kPlanes>
void integer_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                    int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  using Table = TileTable<Form, kPlanes>;
  const int64_t tiles = (row_count + Table::kMaxRows - 1) / Table::kMaxRows;
  const int64_t panels = row_count <= 2 ? 1 : 2;
  for (int64_t panel = first_panel; panel < last_panel; panel += panels) {
    // An odd panel at the end is computed twice rather than by kernels of its own.
    const int64_t second_panel = panel + 1 < last_panel ? panel + 1 : panel;
    for (int64_t tile = 0; tile < tiles; ++tile) {  // rows spread evenly over the tiles
      const int64_t first_row = row_count * tile / tiles, last_row = row_count * (tile + 1) / tiles;
      const TileFunction function = Table::kFunctions[last_row - first_row - 1];
      function(weights, x, first_row, panel, second_panel, y, y_stride);
      if (panels == 2 && last_row - first_row <= 2) {  // this function takes one panel
        function(weights, x, first_row, second_panel, second_panel, y, y_stride);
      }
    }
  }
}

template <class Form>
void integer_planes(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                    int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto kernel = x.planes == 2 ? integer_panels<Form, 2> : integer_panels<Form, 1>;
  kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
}

void linear_integers(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                     int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  if (weights.form == WeightForm::kInt8Channel) {
    return integer_planes<void>(weights, x, row_count, first_panel, last_panel, y, y_stride);
  }
  with_group_form(weights, [&]<class Form>(Form) {
    integer_planes<Form>(weights, x, row_count, first_panel, last_panel, y, y_stride);
  });
}

}  // namespace
}  // namespace espalier::units::cpu
