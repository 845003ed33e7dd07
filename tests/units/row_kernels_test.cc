// Row kernels: the portable set against fp64, every other set against the portable one with ==, at
// every tail.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "espalier/base/dtype.h"
#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {
namespace {

using Floats = std::vector<float>;

Floats random_floats(int64_t count, uint64_t seed, float spread = 1.5f) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, spread);
  Floats x(static_cast<size_t>(count));
  for (float& value : x) value = normal(random);
  return x;
}

constexpr int64_t kWidths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 63, 100, 576};

// `kernel` writes [channels] outputs of one row; `expected` gives them in fp64. The array is one
// longer than the row, so that a kernel that writes past its end is caught.
void check(const std::function<void(const KernelSet&, int64_t channels, float* y)>& kernel,
           const std::function<double(int64_t channels, int64_t c)>& expected, double tolerance) {
  for (const int64_t channels : kWidths) {
    Floats first;
    for (const KernelSet* set : all_kernel_sets()) {
      if (!set->supported()) continue;
      Floats y(static_cast<size_t>(channels) + 1, -77.0f);
      kernel(*set, channels, y.data());
      EXPECT_EQ(y.back(), -77.0f) << set->name << " wrote past " << channels << " channels";
      if (first.empty()) first = y;
      EXPECT_EQ(y, first) << set->name << " " << channels;
      for (int64_t c = 0; c < channels; ++c) {
        const double wanted = expected(channels, c);
        ASSERT_NEAR(y[static_cast<size_t>(c)], wanted, tolerance * std::max(1.0, std::fabs(wanted)))
            << set->name << " channel " << c << " of " << channels;
      }
    }
  }
}

struct Operands {
  Floats a = random_floats(600, 1), b = random_floats(600, 2), w = random_floats(600, 3);
  double x(int64_t c) const { return a[static_cast<size_t>(c)]; }
  double y(int64_t c) const { return b[static_cast<size_t>(c)]; }
  double z(int64_t c) const { return w[static_cast<size_t>(c)]; }
};

const Operands kOperands;

TEST(RowKernels, RmsNorm) {
  check([](const KernelSet& set, int64_t n,
           float* y) { set.rms_norm(kOperands.a.data(), kOperands.w.data(), n, n, 1e-5f, y); },
        [](int64_t n, int64_t c) {
          double squares = 0;
          for (int64_t i = 0; i < n; ++i) squares += kOperands.x(i) * kOperands.x(i);
          return kOperands.x(c) * kOperands.z(c) /
                 std::sqrt(squares / static_cast<double>(n) + 1e-5);
        },
        1e-6);
}

TEST(RowKernels, RmsNormOfGroupsTreatsEachAlone) {
  for (const KernelSet* set : all_kernel_sets()) {
    if (!set->supported()) continue;
    Floats whole(60), alone(20);
    set->rms_norm(kOperands.a.data(), kOperands.w.data(), 60, 20, 1e-5f, whole.data());
    for (int64_t group = 0; group < 3; ++group) {
      set->rms_norm(kOperands.a.data() + group * 20, kOperands.w.data(), 20, 20, 1e-5f,
                    alone.data());
      EXPECT_EQ(Floats(whole.begin() + group * 20, whole.begin() + group * 20 + 20), alone);
    }
  }
}

TEST(RowKernels, LayerNorm) {
  check(
      [](const KernelSet& set, int64_t n, float* y) {
        set.layer_norm(kOperands.a.data(), kOperands.w.data(), kOperands.b.data(), n, 1e-3f, y);
      },
      [](int64_t n, int64_t c) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; ++i) mean += kOperands.x(i) / static_cast<double>(n);
        for (int64_t i = 0; i < n; ++i) {
          variance += (kOperands.x(i) - mean) * (kOperands.x(i) - mean) / static_cast<double>(n);
        }
        return (kOperands.x(c) - mean) / std::sqrt(variance + 1e-3) * kOperands.z(c) +
               kOperands.y(c);
      },
      4e-6);
}

TEST(RowKernels, ElementwiseOps) {
  check([](const KernelSet& set, int64_t n,
           float* y) { set.add(kOperands.a.data(), kOperands.b.data(), n, y); },
        [](int64_t, int64_t c) { return kOperands.x(c) + kOperands.y(c); }, 1e-7);
  check([](const KernelSet& set, int64_t n,
           float* y) { set.mul(kOperands.a.data(), kOperands.b.data(), n, y); },
        [](int64_t, int64_t c) { return kOperands.x(c) * kOperands.y(c); }, 1e-7);
  check([](const KernelSet& set, int64_t n,
           float* y) { set.gated_silu(kOperands.a.data(), kOperands.b.data(), n, y); },
        [](int64_t, int64_t c) {
          return kOperands.x(c) / (1 + std::exp(-kOperands.x(c))) * kOperands.y(c);
        },
        1e-6);
  check([](const KernelSet& set, int64_t n, float* y) { set.gelu(kOperands.a.data(), n, true, y); },
        [](int64_t, int64_t c) {
          const double x = kOperands.x(c);
          return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        },
        1e-6);
  check(
      [](const KernelSet& set, int64_t n, float* y) { set.gelu(kOperands.a.data(), n, false, y); },
      [](int64_t, int64_t c) {
        return 0.5 * kOperands.x(c) * (1 + std::erf(kOperands.x(c) / std::sqrt(2.0)));
      },
      1e-6);
}

TEST(RowKernels, ActivationsSurviveExtremeInputs) {
  const Floats extremes = {-1e30f, -1e4f, -100, -0.0f, 0.0f, 100, 1e4f, 1e30f}, ones(8, 1.0f);
  for (const KernelSet* set : all_kernel_sets()) {
    if (!set->supported()) continue;
    Floats silu(8), gelu(8), erf(8);
    set->gated_silu(extremes.data(), ones.data(), 8, silu.data());
    set->gelu(extremes.data(), 8, true, gelu.data());
    set->gelu(extremes.data(), 8, false, erf.data());
    for (size_t i = 0; i < 8; ++i) {
      const float wanted = extremes[i] > 0 ? extremes[i] : 0.0f;
      EXPECT_EQ(silu[i], wanted);
      EXPECT_EQ(gelu[i], wanted);
      EXPECT_EQ(erf[i], wanted);
    }
  }
}

TEST(RowKernels, RopeRotatesPairsOfBothStylesAndPassesTheRestThrough) {
  constexpr int64_t kHeads = 3;
  for (const bool interleaved : {false, true}) {
    for (const auto& [head_dim, pairs] :
         {std::pair<int64_t, int64_t>{64, 32}, {12, 4}, {40, 20}, {80, 17}}) {
      const Floats cosines = random_floats(pairs, 5), sines = random_floats(pairs, 6);
      Floats first;
      for (const KernelSet* set : all_kernel_sets()) {
        if (!set->supported()) continue;
        Floats y(static_cast<size_t>(kHeads * head_dim));
        set->rope(kOperands.a.data(), cosines.data(), sines.data(), kHeads, head_dim, pairs,
                  interleaved, y.data());
        if (first.empty()) first = y;
        EXPECT_EQ(y, first) << set->name;
        Floats in_place(kOperands.a.begin(), kOperands.a.begin() + kHeads * head_dim);
        set->rope(in_place.data(), cosines.data(), sines.data(), kHeads, head_dim, pairs,
                  interleaved, in_place.data());
        EXPECT_EQ(in_place, first) << set->name;
      }
      for (int64_t head = 0; head < kHeads; ++head) {
        const int64_t start = head * head_dim;
        const auto in = [start](int64_t c) { return kOperands.x(start + c); };
        const auto out = [&first, start](int64_t c) {
          return first[static_cast<size_t>(start + c)];
        };
        for (int64_t i = 0; i < pairs; ++i) {
          const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + pairs;
          const double c = cosines[static_cast<size_t>(i)], s = sines[static_cast<size_t>(i)];
          EXPECT_NEAR(out(a), in(a)*c - in(b)*s, 2e-6);
          EXPECT_NEAR(out(b), in(b)*c + in(a)*s, 2e-6);
        }
        for (int64_t c = 2 * pairs; c < head_dim; ++c) EXPECT_EQ(out(c), static_cast<float>(in(c)));
      }
    }
  }
}

TEST(RowKernels, ShortConvOfEveryKernelWithAndWithoutBias) {
  for (const int64_t kernel : {2, 3, 5}) {
    for (const bool with_bias : {false, true}) {
      const Floats rows = random_floats(kernel * 600, 8), weight = random_floats(kernel * 700, 9);
      std::vector<const float*> taps;
      for (int64_t k = 0; k < kernel; ++k) taps.push_back(rows.data() + k * 600);
      check(
          [&](const KernelSet& set, int64_t n, float* y) {
            set.short_conv(taps.data(), kernel, weight.data(), 700,
                           with_bias ? kOperands.b.data() : nullptr, n, y);
          },
          [&](int64_t, int64_t c) {
            double sum = with_bias ? kOperands.y(c) : 0;
            for (int64_t k = 0; k < kernel; ++k) {
              sum += double{rows[static_cast<size_t>(k * 600 + c)]} *
                     weight[static_cast<size_t>(k * 700 + c)];
            }
            return sum;
          },
          2e-6);
    }
  }
}

TEST(RowKernels, HalvesAreRoundedToEvenAndSaturate) {
  Floats x = random_floats(77, 4, 100.0f);
  x[3] = 1e6f;
  x[40] = -1e6f;
  x[41] = 65519.0f;
  x[70] = 1e-7f;
  for (const KernelSet* set : all_kernel_sets()) {
    if (!set->supported()) continue;
    std::vector<uint16_t> halves(78, 0xABCD);
    set->to_half(x.data(), 77, halves.data());
    EXPECT_EQ(halves[77], 0xABCD);
    for (size_t i = 0; i < 77; ++i) {
      EXPECT_EQ(halves[i], float_to_half(std::min(std::max(x[i], -65504.0f), 65504.0f)))
          << set->name << " " << x[i];
    }
  }
}

}  // namespace
}  // namespace espalier::units::cpu
