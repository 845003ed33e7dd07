// Row kernels of the cpu unit, written once over a 16-lane vector type V (base/vec16.h); each
// kernel set instantiates them for its instruction set. They define the arithmetic: every sum runs
// over 16 lanes in a fixed order, a channel count that is no multiple of 16 is padded with the
// neutral element, multiply and add are fused exactly where fma() is written. So all instruction
// sets agree bit for bit.
//
// No state, no allocation, no alignment; y may be x. Semantics: program/program.h. Everything here
// is a template over V and calls no library template: a copy of shared code compiled for AVX-512
// must never serve another CPU.
#pragma once

#include <cmath>
#include <cstdint>

#include "espalier/base/vec16.h"
#include "espalier/base/vec_math.h"
#include "espalier/units/cpu/attention_layout.h"

namespace espalier::units::cpu {

// A vector of x; where fewer than 16 channels are left, those and the neutral element.
template <class V>
V load_padded(const float* x, int64_t left, float neutral = 0) {
  if (left >= kLanes) return V::load(x);
  if (neutral == 0) return V::load_partial(x, left);
  float lanes[kLanes];
  V::broadcast(neutral).store(lanes);
  V::load_partial(x, left).store_partial(lanes, left);
  return V::load(lanes);
}

template <class V>
void store_first(V value, int64_t left, float* y) {
  if (left >= kLanes) return value.store(y);
  value.store_partial(y, left);
}

// y = f(x) channel by channel.
template <class V, class F>
void map_channels(const float* x, int64_t channels, float* y, F f) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    store_first(f(load_padded<V>(x + c, channels - c)), channels - c, y + c);
  }
}

template <class V, class F>
void map_channels(const float* a, const float* b, int64_t channels, float* y, F f) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int64_t left = channels - c;
    store_first(f(load_padded<V>(a + c, left), load_padded<V>(b + c, left)), left, y + c);
  }
}

template <class V>
void rms_norm_row(const float* x, const float* weight, int64_t channels, int64_t group_channels,
                  float epsilon, float* y) {
  for (int64_t first = 0; first < channels; first += group_channels) {
    V squares = V::zero();
    for (int64_t c = 0; c < group_channels; c += kLanes) {
      const V lanes = load_padded<V>(x + first + c, group_channels - c);
      squares = fma(lanes, lanes, squares);
    }
    const float mean = reduce_add(squares) / static_cast<float>(group_channels);
    const V inverse = V::broadcast(1.0f / std::sqrt(mean + epsilon));
    map_channels<V>(x + first, weight, group_channels, y + first,
                    [=](V lanes, V w) { return lanes * inverse * w; });
  }
}

template <class V>
void layer_norm_row(const float* x, const float* weight, const float* bias, int64_t channels,
                    float epsilon, float* y) {
  V total = V::zero();
  for (int64_t c = 0; c < channels; c += kLanes)
    total = total + load_padded<V>(x + c, channels - c);
  const float mean = reduce_add(total) / static_cast<float>(channels);
  V squares = V::zero();
  for (int64_t c = 0; c < channels; c += kLanes) {
    const V centred = load_padded<V>(x + c, channels - c, mean) - V::broadcast(mean);
    squares = fma(centred, centred, squares);
  }
  const float variance = reduce_add(squares) / static_cast<float>(channels);
  const V inverse = V::broadcast(1.0f / std::sqrt(variance + epsilon));
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int64_t left = channels - c;
    const V centred = load_padded<V>(x + c, left) - V::broadcast(mean);
    const V scaled = centred * inverse;
    store_first(fma(scaled, load_padded<V>(weight + c, left), load_padded<V>(bias + c, left)), left,
                y + c);
  }
}

template <class V>
void rope_head_neox(const float* x, const float* cosines, const float* sines, int64_t pairs,
                    float* y) {
  for (int64_t i = 0; i < pairs; i += kLanes) {
    const int64_t left = pairs - i;
    const V a = load_padded<V>(x + i, left), b = load_padded<V>(x + pairs + i, left);
    const V cosine = load_padded<V>(cosines + i, left), sine = load_padded<V>(sines + i, left);
    store_first(fma(a, cosine, V::zero() - b * sine), left, y + i);
    store_first(fma(b, cosine, a * sine), left, y + pairs + i);
  }
}

template <class V>
void rope_head_interleaved(const float* x, const float* cosines, const float* sines, int64_t pairs,
                           float* y) {
  for (int64_t i = 0; i < pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = std::fma(a, cosines[i], -(b * sines[i]));
    y[2 * i + 1] = std::fma(b, cosines[i], a * sines[i]);
  }
}

template <class V>
void rope_row(const float* x, const float* cosines, const float* sines, int64_t heads,
              int64_t head_dim, int64_t pairs, bool interleaved, float* y) {
  for (int64_t head = 0; head < heads; ++head, x += head_dim, y += head_dim) {
    if (interleaved) {
      rope_head_interleaved<V>(x, cosines, sines, pairs, y);
    } else {
      rope_head_neox<V>(x, cosines, sines, pairs, y);
    }
    for (int64_t c = 2 * pairs; c < head_dim; ++c) y[c] = x[c];
  }
}

template <class V>
void gated_silu_row(const float* gate, const float* up, int64_t channels, float* y) {
  map_channels<V>(gate, up, channels, y, [](V g, V u) { return g * sigmoid(g) * u; });
}

// erf by Abramowitz and Stegun 7.1.26 (absolute error 1.5e-7), on the positive side, where it wants
// no branch.
template <class V>
V error_function_of_positive(V x) {
  const V t = V::broadcast(1) / fma(V::broadcast(0.3275911f), x, V::broadcast(1));
  V sum = V::broadcast(1.061405429f);
  for (const float c : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) {
    sum = fma(sum, t, V::broadcast(c));
  }
  return V::broadcast(1) - sum * t * exp(V::zero() - x * x);
}

template <class V>
void gelu_row(const float* x, int64_t channels, bool tanh_form, float* y) {
  const V zero = V::zero(), one = V::broadcast(1), half = V::broadcast(0.5f);
  if (tanh_form) {
    // x / 2 * (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) * (x + 0.044715 x^3)
    map_channels<V>(x, channels, y, [=](V v) {
      const V inner = fma(v * v * v, V::broadcast(0.044715f), v);
      return v / (one + exp(inner * V::broadcast(-1.5957691216f)));
    });
    return;
  }
  map_channels<V>(x, channels, y, [=](V v) {
    const V magnitude = max(v, zero - v);
    const V erf = error_function_of_positive(magnitude * V::broadcast(0.70710678f));
    // x / 2 * (1 + sign(x) erf|x|) = (x + |x| erf|x|) / 2
    return half * fma(magnitude, erf, v);
  });
}

template <class V>
void add_row(const float* a, const float* b, int64_t channels, float* y) {
  map_channels<V>(a, b, channels, y, [](V x, V z) { return x + z; });
}

template <class V>
void mul_row(const float* a, const float* b, int64_t channels, float* y) {
  map_channels<V>(a, b, channels, y, [](V x, V z) { return x * z; });
}

template <class V>
void short_conv_row(const float* const* taps, int64_t kernel, const float* weight,
                    int64_t weight_stride, const float* bias, int64_t channels, float* y) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int64_t left = channels - c;
    V sum = bias == nullptr ? V::zero() : load_padded<V>(bias + c, left);
    for (int64_t k = 0; k < kernel; ++k) {
      sum = fma(load_padded<V>(weight + k * weight_stride + c, left),
                load_padded<V>(taps[k] + c, left), sum);
    }
    store_first(sum, left, y + c);
  }
}

// Saturates: an infinity in the KV cache would poison every later row.
template <class V>
void to_half_row(const float* x, int64_t count, uint16_t* y) {
  const V limit = V::broadcast(65504);
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    const V lanes = load_padded<V>(x + i, left);
    const V bounded = max(min(lanes, limit), V::zero() - limit);
    bounded.store_half_partial(y + i, left < kLanes ? left : kLanes);
  }
}

}  // namespace espalier::units::cpu
