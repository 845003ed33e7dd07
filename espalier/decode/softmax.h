// The two loops that sampling and log-probabilities share, on the engine's own exp
// (base/vec_math.h), so that a seed gives the same tokens on every machine. Does not allocate; any
// thread.
#pragma once

#include <span>

namespace espalier::decode {

// out[i] = exp(x[i] - shift); x and out have the same size and may be the same buffer.
void exponentials(std::span<const float> x, float shift, std::span<float> out);

// sum(exp(x[i] - shift)), in the order of a fixed number of lanes.
double sum_of_exponentials(std::span<const float> x, float shift);

}  // namespace espalier::decode
