#include "espalier/decode/softmax.h"

#include <algorithm>

#include "espalier/base/check.h"
#include "espalier/base/vec_math.h"

namespace espalier::decode {

void exponentials(std::span<const float> x, float shift, std::span<float> out) {
  CHECK_EQ(x.size(), out.size());
  const Vec16 shifts = Vec16::broadcast(shift);
  const auto count = static_cast<int64_t>(x.size());
  int64_t i = 0;
  for (; i + Vec16::kLanes <= count; i += Vec16::kLanes)
    exp(Vec16::load(&x[i]) - shifts).store(&out[i]);
  for (; i < count; ++i) out[i] = exp_of(x[i] - shift);
}

double sum_of_exponentials(std::span<const float> x, float shift) {
  // Lanes add up 64 numbers in fp32, then double takes over: the error does not grow with the
  // vocabulary.
  constexpr int64_t kBlock = 64 * Vec16::kLanes;
  const Vec16 shifts = Vec16::broadcast(shift);
  const auto count = static_cast<int64_t>(x.size());
  double sum = 0;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(count, first + kBlock);
    Vec16 lanes = Vec16::zero();
    int64_t i = first;
    for (; i + Vec16::kLanes <= last; i += Vec16::kLanes) {
      lanes = lanes + exp(Vec16::load(&x[i]) - shifts);
    }
    sum += static_cast<double>(reduce_add(lanes));
    for (; i < last; ++i) sum += static_cast<double>(exp_of(x[i] - shift));
  }
  return sum;
}

}  // namespace espalier::decode
