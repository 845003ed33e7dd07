// The table of kernel sets, and its row kernels: every set gives the bits of the portable one, also
// for channel counts that fill no vector and for values that are not numbers. What the kernels mean
// is tested against fp64.
#include "espalier/units/cpu/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "espalier/units/cpu/attention_layout.h"

namespace espalier::units::cpu {
namespace {

using Rows = std::vector<float>;

Rows random_row(int64_t channels, std::mt19937_64& random, float deviation = 1.0f) {
  std::normal_distribution<float> normal(0.0f, deviation);
  Rows x(static_cast<size_t>(channels));
  for (float& v : x) v = normal(random);
  return x;
}

// Any bits at all: denormals, infinities and NaNs among them.
Rows random_bits(int64_t channels, std::mt19937_64& random) {
  Rows x(static_cast<size_t>(channels));
  for (float& v : x) v = std::bit_cast<float>(static_cast<uint32_t>(random()));
  return x;
}

void expect_same(const Rows& a, const Rows& b, std::string_view what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << what << ": element " << i << ": " << a[i] << " against " << b[i];
  }
}

// Runs `kernel` with the portable set and with every other set of this machine.
void expect_every_set_agrees(const std::string& what,
                             const std::function<Rows(const KernelSet&)>& kernel) {
  const Rows expected = kernel(kPortableKernels);
  for (const KernelSet* set : all_kernel_sets()) {
    if (set->supported())
      expect_same(kernel(*set), expected, what + " of " + std::string(set->name));
  }
}

const int64_t kChannelCounts[] = {1, 2, 15, 16, 17, 31, 64, 100, 576};

TEST(KernelSets, ThePortableSetIsLastAndAlwaysSupported) {
  const auto sets = all_kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_EQ(sets.back(), &kPortableKernels);
  EXPECT_TRUE(sets.back()->supported());
  EXPECT_EQ(sets.back()->name, "portable");
}

TEST(KernelSets, NamesAreDistinct) {
  const auto sets = all_kernel_sets();
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(sets[i]->name, sets[j]->name);
  }
}

TEST(RowKernels, ElementwiseKernelsAgreeOnAnyBits) {
  std::mt19937_64 random(1);
  for (const int64_t channels : kChannelCounts) {
    for (int round = 0; round < 20; ++round) {
      const bool wild = round % 2 == 0;
      const Rows a = wild ? random_bits(channels, random) : random_row(channels, random, 30);
      const Rows b = wild ? random_bits(channels, random) : random_row(channels, random, 30);
      Rows y(a.size());
      const auto with = [&](auto&& run) {
        return [&, run](const KernelSet& set) {
          run(set);
          return y;
        };
      };
      expect_every_set_agrees(
          "add", with([&](const KernelSet& s) { s.add(a.data(), b.data(), channels, y.data()); }));
      expect_every_set_agrees(
          "mul", with([&](const KernelSet& s) { s.mul(a.data(), b.data(), channels, y.data()); }));
      expect_every_set_agrees("gated_silu", with([&](const KernelSet& s) {
                                s.gated_silu(a.data(), b.data(), channels, y.data());
                              }));
      for (const bool tanh_form : {false, true}) {
        expect_every_set_agrees("gelu", with([&](const KernelSet& s) {
                                  s.gelu(a.data(), channels, tanh_form, y.data());
                                }));
      }
    }
  }
}

TEST(RowKernels, HalvesAgreeOnAnyBits) {
  std::mt19937_64 random(2);
  for (const int64_t channels : kChannelCounts) {
    for (int round = 0; round < 50; ++round) {
      const Rows x =
          round % 2 == 0 ? random_bits(channels, random) : random_row(channels, random, 1e-5f);
      expect_every_set_agrees("to_half", [&](const KernelSet& set) {
        std::vector<uint16_t> halves(x.size());
        set.to_half(x.data(), channels, halves.data());
        Rows y;
        for (const uint16_t half : halves) y.push_back(half_to_float(half));
        return y;
      });
    }
  }
}

TEST(RowKernels, NormsAgree) {
  std::mt19937_64 random(3);
  for (const int64_t channels : kChannelCounts) {
    for (const float deviation : {1e-20f, 1.0f, 1e15f}) {
      const Rows x = random_row(channels, random, deviation);
      const Rows weight = random_row(channels, random), bias = random_row(channels, random);
      expect_every_set_agrees("rms_norm", [&](const KernelSet& set) {
        Rows y(x.size());
        set.rms_norm(x.data(), weight.data(), channels, channels, 1e-5f, y.data());
        return y;
      });
      expect_every_set_agrees("layer_norm", [&](const KernelSet& set) {
        Rows y(x.size());
        set.layer_norm(x.data(), weight.data(), bias.data(), channels, 1e-5f, y.data());
        return y;
      });
    }
  }
}

TEST(RowKernels, RopeAgrees) {
  std::mt19937_64 random(4);
  for (const int64_t head_dim : {2, 6, 64, 80}) {
    for (const int64_t pairs : {head_dim / 2, (head_dim + 2) / 4}) {
      const Rows x = random_row(3 * head_dim, random);
      const Rows cosines = random_row(pairs, random), sines = random_row(pairs, random);
      for (const bool interleaved : {false, true}) {
        expect_every_set_agrees("rope", [&](const KernelSet& set) {
          Rows y = x;  // in place, as a unit may
          set.rope(y.data(), cosines.data(), sines.data(), 3, head_dim, pairs, interleaved,
                   y.data());
          return y;
        });
      }
    }
  }
}

TEST(RowKernels, ShortConvolutionsAgree) {
  std::mt19937_64 random(5);
  for (const int64_t channels : kChannelCounts) {
    const Rows z = random_row(3 * channels, random), weight = random_row(3 * channels, random);
    const Rows bias = random_row(channels, random);
    const float* taps[] = {z.data(), z.data() + channels, z.data() + 2 * channels};
    for (const float* b : {bias.data(), static_cast<const float*>(nullptr)}) {
      expect_every_set_agrees("short_conv", [&](const KernelSet& set) {
        Rows y(static_cast<size_t>(channels));
        set.short_conv(taps, 3, weight.data(), channels, b, channels, y.data());
        return y;
      });
    }
  }
}

TEST(RowKernels, AttentionAgrees) {
  std::mt19937_64 random(6);
  for (const int64_t head_dim : {8, 40, 64}) {
    for (const int64_t committed : {0, 1, 15, 16, 100}) {
      const int64_t window = 9;
      const auto halves = [&](int64_t count) {
        std::vector<uint16_t> result;
        for (const float x : random_row(count, random)) result.push_back(float_to_half(x));
        return result;
      };
      const auto keys = halves(key_elements(committed, head_dim));
      const auto values = halves(value_elements(committed, head_dim));
      const auto window_keys = halves(key_elements(window, head_dim));
      const auto window_values = halves(value_elements(window, head_dim));
      const int32_t path[] = {0, 2, 3, 8};
      for (int64_t queries = 1; queries <= kAttentionQueries; ++queries) {
        const Rows query = random_row(queries * head_dim, random);
        expect_every_set_agrees("attention", [&](const KernelSet& set) {
          Rows y(query.size()), scratch(static_cast<size_t>(attention_scratch_floats(
                                    queries, committed + window, window, head_dim)));
          std::vector<AttentionQuery> rows;
          for (int64_t q = 0; q < queries; ++q) {
            rows.push_back({query.data() + q * head_dim, y.data() + q * head_dim, path, 1 + q % 4});
          }
          set.attention({rows, head_dim, 0.125f, keys.data(), values.data(), committed,
                         window_keys.data(), window_values.data(), scratch.data()});
          return y;
        });
      }
    }
  }
}

TEST(RowKernels, GatedSiluIsSiluTimesUp) {
  std::mt19937_64 random(7);
  const Rows gate = random_row(1000, random, 4), up = random_row(1000, random);
  Rows y(gate.size());
  kPortableKernels.gated_silu(gate.data(), up.data(), 1000, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const double exact = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i];
    EXPECT_NEAR(y[i], exact, 4e-7 * std::abs(exact) + 1e-30);
  }
}

TEST(RowKernels, RmsNormIsTheRootMeanSquareOfItsGroup) {
  std::mt19937_64 random(8);
  const Rows x = random_row(96, random), weight = random_row(48, random);
  Rows y(x.size());
  kPortableKernels.rms_norm(x.data(), weight.data(), 96, 48, 1e-5f, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    double squares = 0;
    for (size_t j = i / 48 * 48; j < i / 48 * 48 + 48; ++j)
      squares += static_cast<double>(x[j]) * x[j];
    const double exact = x[i] * weight[i % 48] / std::sqrt(squares / 48 + 1e-5);
    EXPECT_NEAR(y[i], exact, 5e-7 * std::abs(exact));
  }
}

}  // namespace
}  // namespace espalier::units::cpu
