// Integer products for AVX-512 VNNI: vpdpbusd of unsigned weight bytes with signed activation
// planes, which are just more rows: value = 256 * high + low. The zero point of the weights is
// undone with the sum of the activations: int32 arithmetic wraps, and the true sum fits. Semantics:
// linear.h.
//
// A tile is kRows rows x kPanels panels whose sums stay in registers while K is walked once. Two ways through a matrix:
//   few rows   all of them in one tile of one panel: memory is one sequential stream, read once, asked for kAheadBytes
//              before it is needed; few sums are split in two to hide their latency
//   many rows  panels by twos, then tiles of rows: every load of an activation serves two panels, and the tiles ask for
//              the next panels while they compute
// A weight byte leaves DRAM once whatever the number of rows.
#pragma once

#include <type_traits>

#include "espalier/units/cpu/linear_operands.h"
#include "espalier/units/cpu/unrolled.h"
#include "espalier/units/cpu/vec16_avx512.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kStepBytes = kPanelOutputs * kStepElements;  // one register

template <int kRowsOf, int kPlanesOf, int kPanelsOf>
struct TileShape {
  static constexpr int kRows = kRowsOf;
  static constexpr int kPlanes = kPlanesOf;
  static constexpr int kPanels = kPanelsOf;
  static constexpr int kPlaneRows = kRows * kPlanes;
  static constexpr bool kStream = kPanels == 1;
  static constexpr int kSplit =
      kStream && kPlaneRows <= 10 ? 2 : 1;  // sums of even and odd steps apart
};

// Integer sums of a tile: [split][plane][row][panel].
template <class Shape>
struct Sums {
  static constexpr int kCount = Shape::kSplit * Shape::kPlanes * Shape::kRows * Shape::kPanels;
  __m512i sum[kCount];

  static constexpr int index(int split, int plane, int row, int panel) {
    return ((split * Shape::kPlanes + plane) * Shape::kRows + row) * Shape::kPanels + panel;
  }
};

// The int8 rows of a tile, in the order (row, plane). A pointer for every third of them: x86 reaches
// the others at once and twice the stride, and a pointer for each would not fit the registers.
template <int kCount>
struct PlaneRows {
  static constexpr int kPointers = (kCount + 2) / 3;
  const std::byte* third[kPointers];
  int64_t stride;

  PlaneRows() = default;
  PlaneRows(const ActivationLayout& x, int64_t first_row)
      : stride(x.planes == 2 ? x.plane_bytes : x.record_bytes) {
    for (int i = 0; i < kPointers; ++i)
      third[i] = x.records + first_row * x.record_bytes + 3 * i * stride;
  }

  template <int kIndex>
  [[gnu::always_inline]] inline __m512i broadcast_step(int64_t k) const {
    int32_t four;
    std::memcpy(&four, third[kIndex / 3] + k + kIndex % 3 * stride, sizeof(four));
    return _mm512_set1_epi32(four);
  }
};

// What a tile reads and the fp32 results it grows.
template <class Shape>
struct Tile {
  NextPanels next;
  const std::byte* panel[Shape::kPanels];
  PlaneRows<Shape::kPlaneRows> values;
  ActivationRow row[Shape::kRows];
  __m512 y[Shape::kRows][Shape::kPanels];
};

// One step of 4 k for every plane, row and panel.
template <int kSplitIndex, class Shape>
[[gnu::always_inline]] inline void add_step(const __m512i* weights,
                                            const PlaneRows<Shape::kPlaneRows>& values, int64_t k,
                                            Sums<Shape>& sums) {
  unrolled<Shape::kPlanes * Shape::kRows>([&](auto i) ESPALIER_INLINE {
    constexpr int kRow = i / Shape::kPlanes, kPlane = i % Shape::kPlanes;
    const __m512i a = values.template broadcast_step<i>(k);
    unrolled<Shape::kPanels>([&](auto panel) ESPALIER_INLINE {
      __m512i& sum = sums.sum[Sums<Shape>::index(kSplitIndex, kPlane, kRow, panel)];
      sum = _mm512_dpbusd_epi32(sum, weights[panel], a);
    });
  });
}

// Two steps, from k on, of every panel, at `offset` in each.
template <bool kNibbles, class Shape>
[[gnu::always_inline]] inline void add_step_pair(const Tile<Shape>& tile, int64_t offset, int64_t k,
                                                 Sums<Shape>& sums) {
  __m512i even[Shape::kPanels], odd[Shape::kPanels];
  unrolled<Shape::kPanels>([&](auto panel) ESPALIER_INLINE {
    const std::byte* p = tile.panel[panel] + offset;
    if constexpr (Shape::kStream) {  // without a loop of its own, 3 % faster than NextPanels
      __builtin_prefetch(p + kAheadBytes);
      if constexpr (!kNibbles) __builtin_prefetch(p + kAheadBytes + kStepBytes);
    }
    even[panel] = _mm512_loadu_si512(p);
    if constexpr (kNibbles) {
      const __m512i low = _mm512_set1_epi8(0xf);
      odd[panel] = _mm512_and_si512(_mm512_srli_epi16(even[panel], 4), low);
      even[panel] = _mm512_and_si512(even[panel], low);
    } else {
      odd[panel] = _mm512_loadu_si512(p + kStepBytes);
    }
  });
  add_step<0>(even, tile.values, k, sums);
  add_step<Shape::kSplit - 1>(odd, tile.values, k + kStepElements, sums);
}

// `kElements` k of every panel, from k on.
template <bool kNibbles, int64_t kElements, class Shape>
[[gnu::always_inline]] inline void add_steps(const Tile<Shape>& tile, int64_t offset, int64_t k,
                                             Sums<Shape>& sums) {
  constexpr int64_t kPairBytes = kNibbles ? kStepBytes : 2 * kStepBytes;
  unrolled<kElements / (2 * kStepElements)>([&](auto pair) ESPALIER_INLINE {
    add_step_pair<kNibbles>(tile, offset + pair * kPairBytes, k + pair * 2 * kStepElements, sums);
  });
}

template <class Shape>
[[gnu::always_inline]] inline void clear(Sums<Shape>& sums) {
  unrolled<Sums<Shape>::kCount>([&](auto i)
                                    ESPALIER_INLINE { sums.sum[i] = _mm512_setzero_si512(); });
}

// Holds a sum in a register across the rounds of a loop: g++ 12 writes all of them to memory at the end of each.
[[gnu::always_inline]] inline void keep_in_register(__m512i& sum) { asm("" : "+v"(sum)); }

template <class Shape>
[[gnu::always_inline]] inline void keep_in_registers(Sums<Shape>& sums) {
  unrolled<Sums<Shape>::kCount>([&](auto i) ESPALIER_INLINE { keep_in_register(sums.sum[i]); });
}

// The exact sum of one row and panel, less `correction`, as fp32.
template <int kRow, int kPanel, class Shape>
[[gnu::always_inline]] inline __m512 finish(const Sums<Shape>& sums, __m512i correction) {
  const auto plane_sum = [&](auto plane) ESPALIER_INLINE {
    const __m512i sum = sums.sum[Sums<Shape>::index(0, plane, kRow, kPanel)];
    if constexpr (Shape::kSplit == 1) return sum;
    return _mm512_add_epi32(sum,
                            sums.sum[Sums<Shape>::index(Shape::kSplit - 1, plane, kRow, kPanel)]);
  };
  __m512i sum = plane_sum(std::integral_constant<int, 0>());
  if constexpr (Shape::kPlanes == 2) {
    sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8), plane_sum(std::integral_constant<int, 1>()));
  }
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, correction));
}

template <class Shape>
void int8_tile(const LinearLayout& weights, Tile<Shape>& tile) {
  const int64_t chunks = weights.padded_columns / NextPanels::kElements;
  constexpr int64_t kBlockChunks = kBlockElements / NextPanels::kElements;
  int64_t k = 0;
  for (int64_t block = 0; block * kBlockChunks < chunks; ++block) {
    const int64_t left = chunks - block * kBlockChunks;
    Sums<Shape> sums;
    clear(sums);
    for (int64_t chunk = left < kBlockChunks ? left : kBlockChunks; chunk > 0; --chunk) {
      tile.next.ask();
      add_steps<false, NextPanels::kElements>(tile, k * kPanelOutputs, k, sums);
      k += NextPanels::kElements;
      keep_in_registers(sums);
    }
    unrolled<Shape::kRows>([&](auto row) ESPALIER_INLINE {
      const __m512i correction = _mm512_set1_epi32(tile.row[row].block_sums[block] * 128);
      const __m512 scale = _mm512_set1_ps(tile.row[row].scales[block]);
      unrolled<Shape::kPanels>([&](auto panel) ESPALIER_INLINE {
        __m512& y = tile.y[row][panel];
        y = _mm512_fmadd_ps(finish<row, panel>(sums, correction), scale, y);
      });
    });
  }
  for (int panel = 0; panel < Shape::kPanels; ++panel) {
    const __m512 scales = _mm512_loadu_ps(tile.panel[panel] + k * kPanelOutputs);
    for (int row = 0; row < Shape::kRows; ++row)
      tile.y[row][panel] = _mm512_mul_ps(tile.y[row][panel], scales);
  }
}

// One group: its sums, then fp32 into totals[row][panel]. `offset` is where its record starts in
// the panels.
template <class Form, class Shape>
[[gnu::always_inline]] inline void add_group(const LinearLayout& weights, Tile<Shape>& tile,
                                             int64_t group, int64_t offset,
                                             __m512 (*totals)[Shape::kPanels]) {
  Sums<Shape> sums;
  clear(sums);
  int64_t chunk = group * Form::kChunks;
  do {
    ask_for_chunk<Form>(chunk, tile.next);
    add_steps<Form::kNibbles, Form::kChunk>(tile, offset, chunk * Form::kChunk, sums);
    offset += Form::kChunkBytes;
    ++chunk;
    if constexpr (Form::kChunks > 1) keep_in_registers(sums);
  } while (chunk < (group + 1) * Form::kChunks);
  const std::byte* scales_at[Shape::kPanels];
  for (int panel = 0; panel < Shape::kPanels; ++panel)
    scales_at[panel] = tile.panel[panel] + offset;
  Vec16Avx512 scales[Shape::kPanels], offsets[Shape::kPanels];
  load_scales<Form>(weights.scales, scales_at, scales, offsets);
  unrolled<Shape::kRows>([&](auto row) ESPALIER_INLINE {
    const __m512i sum = _mm512_set1_epi32(group_sum<Form>(tile.row[row], group));
    const __m512i correction = Form::kZeroPoint == 0
                                   ? _mm512_setzero_si512()
                                   : _mm512_slli_epi32(sum, Form::kZeroPoint == 8 ? 3 : 7);
    unrolled<Shape::kPanels>([&](auto panel) ESPALIER_INLINE {
      __m512& total = totals[row][panel];
      total = _mm512_fmadd_ps(scales[panel].value, finish<row, panel>(sums, correction), total);
      if constexpr (Form::kOffsets)
        total = _mm512_fmadd_ps(offsets[panel].value, _mm512_cvtepi32_ps(sum), total);
    });
  });
}

template <class Form, class Shape>
void group_tile(const LinearLayout& weights, Tile<Shape>& tile) {
  const int64_t record_bytes = group_bytes<Form>(weights);
  const int64_t groups = weights.padded_columns / Form::kElements;
  constexpr int64_t kBlockGroups = kBlockElements / Form::kElements;
  int64_t offset = 0;
  for (int64_t block = 0; block * kBlockGroups < groups; ++block) {
    const int64_t end = (block + 1) * kBlockGroups, last = end < groups ? end : groups;
    __m512 totals[Shape::kRows][Shape::kPanels];
    unrolled<Shape::kRows * Shape::kPanels>([&](auto i) ESPALIER_INLINE {
      totals[i / Shape::kPanels][i % Shape::kPanels] = _mm512_setzero_ps();
    });
    for (int64_t group = block * kBlockGroups; group < last; ++group, offset += record_bytes) {
      add_group<Form>(weights, tile, group, offset, totals);
    }
    unrolled<Shape::kRows * Shape::kPanels>([&](auto i) ESPALIER_INLINE {
      constexpr int kRow = i / Shape::kPanels, kPanel = i % Shape::kPanels;
      const __m512 scale = _mm512_set1_ps(tile.row[kRow].scales[block]);
      tile.y[kRow][kPanel] = _mm512_fmadd_ps(totals[kRow][kPanel], scale, tile.y[kRow][kPanel]);
    });
  }
}

// Form: ChannelForm or a GroupForm. Panels [panel, panel_end), of which there may be one less than a
// tile has: an odd panel at the end is computed twice rather than by kernels of its own.
template <class Form, class Shape>
void compute_tile(const LinearLayout& weights, const ActivationLayout& x, int64_t first_row,
                  int64_t panel, int64_t panel_end, const NextPanels& next, float* y,
                  int64_t y_stride) {
  const int64_t panels[2] = {panel, panel_end - 1};
  // Results lie far apart and may have left the caches: asked for now, they are there when the sums are.
  if constexpr (!Shape::kStream) {
    for (int row = 0; row < Shape::kRows; ++row) {
      for (const int64_t of : panels)
        __builtin_prefetch(y + (first_row + row) * y_stride + of * kPanelOutputs, 1);
    }
  }
  Tile<Shape> tile;
  tile.values = PlaneRows<Shape::kPlaneRows>(x, first_row);
  tile.next = next;
  for (int row = 0; row < Shape::kRows; ++row) {
    tile.row[row] = activation_row(x, first_row + row);
    for (__m512& sum : tile.y[row]) sum = _mm512_setzero_ps();
  }
  for (int i = 0; i < Shape::kPanels; ++i)
    tile.panel[i] = weights.panels + panels[i] * weights.panel_bytes;
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    int8_tile(weights, tile);
  } else {
    group_tile<Form>(weights, tile);
  }
  for (int i = 0; i < Shape::kPanels; ++i) {
    const auto mask = static_cast<__mmask16>((1u << panel_outputs(weights, panels[i])) - 1);
    for (int row = 0; row < Shape::kRows; ++row) {
      _mm512_mask_storeu_ps(y + (first_row + row) * y_stride + panels[i] * kPanelOutputs, mask,
                            tile.y[row][i]);
    }
  }
}

using TileFunction = void (*)(const LinearLayout&, const ActivationLayout&, int64_t first_row,
                              int64_t panel, int64_t panel_end, const NextPanels& next, float* y,
                              int64_t y_stride);

// Rows of the tallest tile of two panels: int8 keeps its fp32 results in memory (it needs them once in 512 k), groups in
// registers.
template <class Form, int kPlanes>
constexpr int tile_rows() {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    return 6;
  } else {
    return kPlanes == 1 ? 5 : 4;
  }
}

// Few rows: more than these are faster by twos of panels, because nibbles must be unpacked, and scales loaded, for each.
template <class Form>
constexpr int stream_rows() {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    return 12;
  } else {
    return Form::kNibbles ? 4 : 8;
  }
}

// The function for `rows` rows, 1..kMaxRows.
template <class Form, int kPlanes, int kPanels, int kMaxRows, int kRows = 1>
TileFunction tile_function(int64_t rows) {
  if constexpr (kRows < kMaxRows) {
    if (rows > kRows) return tile_function<Form, kPlanes, kPanels, kMaxRows, kRows + 1>(rows);
  }
  return compute_tile<Form, TileShape<kRows, kPlanes, kPanels>>;
}

template <class Form, int kPlanes>
void stream_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                   int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const TileFunction compute = tile_function<Form, kPlanes, 1, stream_rows<Form>()>(row_count);
  for (int64_t panel = first_panel; panel < last_panel; ++panel)
    compute(weights, x, 0, panel, panel + 1, NextPanels(), y, y_stride);
}

template <class Form, int kPlanes>
void tiled_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                  int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  constexpr int kMaxRows = tile_rows<Form, kPlanes>();
  const int64_t tiles = (row_count + kMaxRows - 1) / kMaxRows;
  for (int64_t panel = first_panel; panel < last_panel; panel += 2) {
    const int64_t panel_end = panel + 2 < last_panel ? panel + 2 : last_panel;
    const int64_t next_end = panel_end + 2 < last_panel ? panel_end + 2 : last_panel;
    // Rows are spread evenly, so that there is no tile of one row among others.
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first_row = row_count * tile / tiles, last_row = row_count * (tile + 1) / tiles;
      const NextPanels next(weights, panel_end, next_end - panel_end, tile, tiles);
      tile_function<Form, kPlanes, 2, kMaxRows>(last_row - first_row)(weights, x, first_row, panel,
                                                                      panel_end, next, y, y_stride);
    }
  }
}

template <class Form>
void integer_planes(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                    int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto planes = [&](auto count) {
    const auto kernel =
        row_count <= stream_rows<Form>() ? stream_panels<Form, count> : tiled_panels<Form, count>;
    kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
  };
  if (x.planes == 2) return planes(std::integral_constant<int, 2>());
  planes(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace espalier::units::cpu
