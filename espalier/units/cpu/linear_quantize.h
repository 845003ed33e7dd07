// Activations to integers, over the vector type V: the same bits in every kernel set. How the
// integers are stored is the set's choice: Store::store(values, layout, first, count, integers).
// Semantics: linear.h.
#pragma once

#include "espalier/units/cpu/linear_operands.h"

namespace espalier::units::cpu {
namespace {

// int16 whatever the number of planes: portable and AVX2 kernels multiply 16-bit numbers.
struct StoreInt16 {
  static void store(std::byte* values, const ActivationLayout& /*layout*/, int64_t first,
                    int64_t count, const int32_t* integers) {
    auto* out = reinterpret_cast<int16_t*>(values) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int16_t>(integers[i]);
  }
};

// int8 planes, each in its half of the record. With two planes value = 256 * high + low, high first;
// with one, the value itself.
struct StorePlanes {
  static void store(std::byte* values, const ActivationLayout& layout, int64_t first, int64_t count,
                    const int32_t* integers) {
    auto* out = reinterpret_cast<int8_t*>(values) + first;
    if (layout.planes == 2) {
      for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>((integers[i] + 128) >> 8);
      out += layout.plane_bytes;
    }
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int8_t>(integers[i] & 0xff);
  }
};

// The largest magnitude, and NaN if there is anything that is not finite.
template <class V>
float finite_absmax(const float* x, int64_t count) {
  V largest = V::zero(), poison = V::zero();
  for (int64_t i = 0; i < count; i += V::kLanes) {
    const int64_t left = count - i;
    const V value = left >= V::kLanes ? V::load(x + i) : V::load_partial(x + i, left);
    largest = max(largest, abs(value));
    poison = fma(value, V::zero(), poison);  // 0, or NaN from an infinity or a NaN on
  }
  return reduce_max(largest) + reduce_add(poison);
}

// Integers of one K-block into `integers` [padded count]; returns the scale.
template <class V>
float quantize_block(const float* x, int64_t count, int64_t padded_count, int planes,
                     int32_t* integers) {
  const float absmax = finite_absmax<V>(x, count);
  const float scale = absmax / (planes == 2 ? 32639.0f : 127.0f);
  if (!(absmax >= 0x1p-100f)) {  // too small to scale, or NaN
    for (int64_t i = 0; i < padded_count; ++i) integers[i] = 0;
    return absmax < 0x1p-100f ? 0.0f : scale;
  }
  const V divisor = V::broadcast(scale);
  for (int64_t i = 0; i < padded_count; i += V::kLanes) {
    const int64_t left = count - i;
    const V value =
        left >= V::kLanes ? V::load(x + i) : V::load_partial(x + i, left > 0 ? left : 0);
    (value / divisor).store_int32(integers + i);
  }
  return scale;
}

template <class V, class Store>
void quantize_row(const float* x, const ActivationLayout& layout, std::byte* record) {
  auto* scales = reinterpret_cast<float*>(record + layout.scales_at);
  auto* block_sums = reinterpret_cast<int32_t*>(record + layout.block_sums_at);
  auto* sums32 = reinterpret_cast<int32_t*>(record + layout.sums32_at);
  auto* sums16 = reinterpret_cast<int32_t*>(record + layout.sums16_at);
  int32_t integers[kBlockElements];
  for (int64_t first = 0; first < layout.padded_columns; first += kBlockElements) {
    const int64_t left = layout.columns - first, padded_left = layout.padded_columns - first;
    const int64_t count = left < kBlockElements ? left : kBlockElements;
    const int64_t padded_count = padded_left < kBlockElements ? padded_left : kBlockElements;
    *scales++ = quantize_block<V>(x + first, count, padded_count, layout.planes, integers);
    Store::store(record, layout, first, padded_count, integers);
    int32_t block_sum = 0;
    for (int64_t group = 0; group < padded_count; group += 32) {
      for (int64_t half = group; half < group + 32; half += 16) {
        int32_t sum = 0;
        for (int64_t i = 0; i < 16; ++i) sum += integers[half + i];
        *sums16++ = sum;
      }
      *sums32++ = sums16[-2] + sums16[-1];
      block_sum += sums32[-1];
    }
    *block_sums++ = block_sum;
  }
}

template <class V, class Store>
void quantize_rows_of(const float* x, int64_t x_stride, int64_t first_row, int64_t row_count,
                      const ActivationLayout& layout) {
  for (int64_t row = first_row; row < first_row + row_count; ++row) {
    std::byte* record = layout.records + row * layout.record_bytes;
    if (layout.planes == 0) {
      std::memcpy(record, x + row * x_stride, static_cast<size_t>(layout.columns) * sizeof(float));
    } else {
      quantize_row<V, Store>(x + row * x_stride, layout, record);
    }
  }
}

}  // namespace
}  // namespace espalier::units::cpu
