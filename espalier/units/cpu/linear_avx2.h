// Integer products for AVX2: 16-bit activations times weights widened to 16 bits (vpmaddwd), 16
// outputs of up to three rows at a time, which is what 16 registers hold. Bytes are widened without
// sign and the zero point is undone with the sum of the activations: int32 arithmetic wraps, and
// the true sum fits. Semantics: linear.h.
#pragma once

#include "espalier/units/cpu/linear_operands.h"
#include "espalier/units/cpu/vec16_avx2.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kPartBytes = 16;  // of a step: 4 outputs of 4 k
constexpr int kParts = 4;
constexpr int64_t kStepBytes = kParts * kPartBytes;

// Sums of one row and 16 outputs: part p holds outputs 4p..4p+3, two partial sums each.
struct PairSums {
  __m256i part[kParts];
};

// One step of 4 k: w are 4 outputs x 4 k as 16-bit numbers.
template <int kRows>
[[gnu::always_inline]] inline void add_part(int part, __m256i w, const __m256i* a, PairSums* sums) {
  for (int r = 0; r < kRows; ++r) {
    sums[r].part[part] = _mm256_add_epi32(sums[r].part[part], _mm256_madd_epi16(w, a[r]));
  }
}

[[gnu::always_inline]] inline __m256i widen(const std::byte* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

template <int kRows>
[[gnu::always_inline]] inline void load_steps(const int16_t* const* rows, int64_t k, __m256i* a) {
  for (int r = 0; r < kRows; ++r) {
    int64_t four;
    std::memcpy(&four, rows[r] + k, sizeof(four));
    a[r] = _mm256_set1_epi64x(four);
  }
}

// Two steps (8 k) at `quants`.
template <bool kNibbles, int kRows>
[[gnu::always_inline]] inline void add_step_pair(const std::byte* quants,
                                                 const int16_t* const* rows, int64_t k,
                                                 PairSums* sums) {
  __m256i even[kRows], odd[kRows];
  load_steps<kRows>(rows, k, even);
  load_steps<kRows>(rows, k + kStepElements, odd);
  for (int part = 0; part < kParts; ++part) {
    if constexpr (kNibbles) {
      const __m256i both = widen(quants + part * kPartBytes);
      add_part<kRows>(part, _mm256_and_si256(both, _mm256_set1_epi16(0xf)), even, sums);
      add_part<kRows>(part, _mm256_srli_epi16(both, 4), odd, sums);
    } else {
      add_part<kRows>(part, widen(quants + part * kPartBytes), even, sums);
      add_part<kRows>(part, widen(quants + kStepBytes + part * kPartBytes), odd, sums);
    }
  }
}

// The 16 sums in order, less `correction`, as fp32.
[[gnu::always_inline]] inline Vec16Avx2 finish(const PairSums& sums, int32_t correction) {
  const __m256i less = _mm256_set1_epi32(correction);
  const auto eight = [&](__m256i a, __m256i b) {
    const __m256i mixed =
        _mm256_permute4x64_epi64(_mm256_hadd_epi32(a, b), _MM_SHUFFLE(3, 1, 2, 0));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(mixed, less));
  };
  return {eight(sums.part[0], sums.part[1]), eight(sums.part[2], sums.part[3])};
}

template <int kRows>
struct RowTile {
  ActivationRow row[kRows];
  const int16_t* values[kRows];
  Vec16Avx2 y[kRows];

  RowTile(const ActivationLayout& x, int64_t first_row) {
    for (int r = 0; r < kRows; ++r) {
      row[r] = activation_row(x, first_row + r);
      values[r] = reinterpret_cast<const int16_t*>(row[r].values);
      y[r] = Vec16Avx2::zero();
    }
  }
};

template <int kRows>
void int8_tile(const LinearLayout& weights, const std::byte* panel, RowTile<kRows>& tile) {
  int64_t k = 0;
  for (int64_t block = 0; k < weights.padded_columns; ++block) {
    const int64_t end = k + kBlockElements;
    const int64_t last = end < weights.padded_columns ? end : weights.padded_columns;
    PairSums sums[kRows] = {};
    for (; k < last; k += 2 * kStepElements) {
      add_step_pair<false, kRows>(panel + k * kPanelOutputs, tile.values, k, sums);
    }
    for (int r = 0; r < kRows; ++r) {
      const Vec16Avx2 dot = finish(sums[r], tile.row[r].block_sums[block] * 128);
      tile.y[r] = fma(dot, Vec16Avx2::broadcast(tile.row[r].scales[block]), tile.y[r]);
    }
  }
  const auto scales = Vec16Avx2::load(reinterpret_cast<const float*>(panel + k * kPanelOutputs));
  for (Vec16Avx2& y : tile.y) y = y * scales;
}

template <class Form, int kRows>
void group_tile(const LinearLayout& weights, const std::byte* panel, RowTile<kRows>& tile) {
  const int64_t scale_bytes = scales_bytes<Form>(weights),
                record_bytes = group_bytes<Form>(weights);
  int64_t k = 0;
  for (int64_t block = 0; k < weights.padded_columns; ++block) {
    const int64_t end = k + kBlockElements;
    const int64_t last = end < weights.padded_columns ? end : weights.padded_columns;
    Vec16Avx2 total[kRows];
    for (Vec16Avx2& t : total) t = Vec16Avx2::zero();
    for (; k < last; panel += record_bytes) {
      PairSums sums[kRows] = {};
      const int64_t group = k / Form::kElements;
      const std::byte* quants = panel;
      for (int64_t pair = 0; pair < Form::kElements / (2 * kStepElements); ++pair) {
        add_step_pair<Form::kNibbles, kRows>(quants, tile.values, k, sums);
        quants += Form::kNibbles ? kStepBytes : 2 * kStepBytes;
        k += 2 * kStepElements;
      }
      const auto scale = load_scales<Vec16Avx2>(quants, weights.wide_scales);
      for (int r = 0; r < kRows; ++r) {
        const int32_t sum = group_sums<Form>(tile.row[r])[group];
        total[r] = fma(scale, finish(sums[r], sum * Form::kZeroPoint), total[r]);
        if constexpr (Form::kOffsets) {
          const auto offset = load_scales<Vec16Avx2>(quants + scale_bytes, weights.wide_scales);
          total[r] = fma(offset, Vec16Avx2::broadcast(static_cast<float>(sum)), total[r]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      tile.y[r] = fma(total[r], Vec16Avx2::broadcast(tile.row[r].scales[block]), tile.y[r]);
    }
  }
}

// Form: ChannelForm or a GroupForm.
template <class Form, int kRows>
void compute_tile(const LinearLayout& weights, const ActivationLayout& x, int64_t first_row,
                  int64_t panel, float* y, int64_t y_stride) {
  RowTile<kRows> tile(x, first_row);
  const std::byte* bytes = weights.panels + panel * weights.panel_bytes;
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    int8_tile(weights, bytes, tile);
  } else {
    group_tile<Form>(weights, bytes, tile);
  }
  for (int r = 0; r < kRows; ++r) {
    tile.y[r].store_partial(y + (first_row + r) * y_stride + panel * kPanelOutputs,
                            panel_outputs(weights, panel));
  }
}

template <class Form>
void integer_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                    int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  for (int64_t panel = first_panel; panel < last_panel; ++panel) {
    int64_t row = 0;
    for (; row_count - row > 4 || row_count - row == 3; row += 3) {
      compute_tile<Form, 3>(weights, x, row, panel, y, y_stride);
    }
    for (; row_count - row >= 2; row += 2)
      compute_tile<Form, 2>(weights, x, row, panel, y, y_stride);
    if (row < row_count) compute_tile<Form, 1>(weights, x, row, panel, y, y_stride);
  }
}

void linear_integers(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                     int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    integer_panels<Form>(weights, x, row_count, first_panel, last_panel, y, y_stride);
  });
}

}  // namespace
}  // namespace espalier::units::cpu
