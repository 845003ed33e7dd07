// exp and what follows from it, as templates over the vector type of base/vec16.h, and as scalars
// that give the same bits. Softmax, SiLU and the sampler use these and nothing else, so that a
// probability is one number everywhere. True divide and square root; no estimate instructions, no
// table.
//
// exp: error below 1 ULP (0.993 found, nearly all of it from the rounded reduction); gradual
// underflow below -87.3, 0 below -103.98, infinity above 88.7228; NaN stays NaN.
#pragma once

#include "espalier/base/vec16.h"

namespace espalier {

// Nearest integer, ties to even, for |x| < 2^22.
template <class V>
V round_even(V x) {
  const V magic = V::broadcast(kRoundToInteger);
  return (x + magic) - magic;
}

template <class V>
V exp(V x) {
  // Beyond these bounds the result is infinity or 0 anyway. The order keeps NaN (see max in
  // vec16.h).
  x = min(V::broadcast(89.0f), max(V::broadcast(-104.5f), x));
  const V n = round_even(x * V::broadcast(0x1.715476p+0f));  // x / ln 2
  V r = fma(n, V::broadcast(-0x1.62e43p-1f), x);  // ln 2 in two parts: the first product is exact
  r = fma(n, V::broadcast(0x1.05c61p-29f), r);    // |r| <= 0.3466
  // e^r = 1 + r + r^2 p(r); p by Remez, relative error of e^r 3.1e-9.
  V p = V::broadcast(0x1.6a23c6p-10f);
  p = fma(p, r, V::broadcast(0x1.123a2p-7f));
  p = fma(p, r, V::broadcast(0x1.5558f4p-5f));
  p = fma(p, r, V::broadcast(0x1.555492p-3f));
  p = fma(p, r, V::broadcast(0x1.fffffcp-2f));
  const V mantissa = V::broadcast(1.0f) + fma(p, r * r, r);
  // 2^n in two steps: 2^128 and 2^-150 are no normal floats; only the second product can round.
  const V half = round_even(n * V::broadcast(0.5f));
  return mantissa * power_of_two(half) * power_of_two(n - half);
}

// 1 / (1 + e^-x)
template <class V>
V sigmoid(V x) {
  const V one = V::broadcast(1.0f);
  return one / (one + exp(V::zero() - x));
}

// The same functions of one float. Not inline: they must never be compiled with extra ISA flags.
float exp_of(float x);
float sigmoid_of(float x);

}  // namespace espalier
