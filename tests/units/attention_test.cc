// The attention kernel: against fp64 on the same fp16 keys and values, and with == between kernel
// sets and between every way in which the same positions can lie: committed or in the window,
// packed as a tree, alone or in a tile.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "espalier/base/dtype.h"
#include "espalier/units/cpu/attention_layout.h"
#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/state.h"

namespace espalier::units::cpu {
namespace {

std::vector<const KernelSet*> present_sets() {
  std::vector<const KernelSet*> sets;
  for (const KernelSet* set : all_kernel_sets()) {
    if (set->supported()) sets.push_back(set);
  }
  return sets;
}

// Keys and values of `length` positions, in fp16, and queries for the last one.
struct Context {
  Context(int64_t head_dim, int64_t positions, int64_t query_count, uint64_t seed)
      : dim(head_dim),
        length(positions),
        keys(static_cast<size_t>(positions * head_dim)),
        values(keys.size()),
        queries(static_cast<size_t>(query_count * head_dim)) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (uint16_t& x : keys) x = float_to_half(normal(random));
    for (uint16_t& x : values) x = float_to_half(normal(random));
    for (float& x : queries) x = normal(random);
  }

  int64_t query_count() const { return static_cast<int64_t>(queries.size()) / dim; }
  int64_t dim, length;
  std::vector<uint16_t> keys, values;  // [length, dim]
  std::vector<float> queries;          // [query_count, dim]
};

constexpr float kScale = 0.3f;

std::vector<double> naive_attention(const Context& context, int64_t query) {
  const auto at = [&](const auto& rows, int64_t row, int64_t d) {
    return rows[static_cast<size_t>(row * context.dim + d)];
  };
  std::vector<double> weights(static_cast<size_t>(context.length)),
      output(static_cast<size_t>(context.dim));
  for (int64_t p = 0; p < context.length; ++p) {
    double score = 0;
    for (int64_t d = 0; d < context.dim; ++d) {
      score += double{at(context.queries, query, d)} * half_to_float(at(context.keys, p, d));
    }
    weights[static_cast<size_t>(p)] = std::exp(score * kScale);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (int64_t p = 0; p < context.length; ++p) {
    for (int64_t d = 0; d < context.dim; ++d) {
      output[static_cast<size_t>(d)] +=
          weights[static_cast<size_t>(p)] / total * half_to_float(at(context.values, p, d));
    }
  }
  return output;
}

// Puts the first `committed` positions into the cache and the others at `rows` of the window, then
// runs the queries [first, last) of the context in one tile.
std::vector<float> run_kernel(const KernelSet& kernels, const Context& context, int64_t committed,
                              const std::vector<int32_t>& rows, int64_t first, int64_t last) {
  const int64_t window_rows = rows.back() + 1;
  const StateShape shape{.kind = program::StateKind::kKeyValue,
                         .channels = context.dim,
                         .kv_heads = 1,
                         .head_dim = context.dim,
                         .rows = 0};
  KeyValueRows cache(shape, committed), window(shape, window_rows);
  const std::vector<uint16_t> garbage(static_cast<size_t>(context.dim),
                                      0x7BFF);  // 65504: would be seen
  for (int64_t row = 0; row < window_rows; ++row)
    window.write_position(row, garbage.data(), garbage.data());
  for (int64_t p = 0; p < context.length; ++p) {
    KeyValueRows& target = p < committed ? cache : window;
    target.write_position(p < committed ? p : rows[static_cast<size_t>(p - committed)],
                          context.keys.data() + p * context.dim,
                          context.values.data() + p * context.dim);
  }
  std::vector<float> output(static_cast<size_t>((last - first) * context.dim));
  std::vector<AttentionQuery> queries;
  for (int64_t query = first; query < last; ++query) {
    queries.push_back({.query = context.queries.data() + query * context.dim,
                       .output = output.data() + (query - first) * context.dim,
                       .path = rows.data(),
                       .path_length = context.length - committed});
  }
  std::vector<float> scratch(static_cast<size_t>(attention_scratch_floats(
                                 kAttentionQueries, committed, window_rows, context.dim)),
                             NAN);
  kernels.attention({.queries = queries,
                     .head_dim = context.dim,
                     .scale = kScale,
                     .keys = cache.keys(0),
                     .values = cache.values(0),
                     .committed = committed,
                     .window_keys = window.keys(0),
                     .window_values = window.values(0),
                     .scratch = scratch.data()});
  return output;
}

std::vector<int32_t> consecutive(int64_t count) {
  std::vector<int32_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Scores are sums of `dim` terms in fp32, an exponential is good to an ulp, and the weighted sum
// adds `length` terms: errors of about (dim + length) ulp of values near 1, far below 1e-5 here.
TEST(Attention, AgreesWithFp64OnTheSameHalves) {
  for (const KernelSet* kernels : present_sets()) {
    for (const int64_t dim : {8, 12, 64, 80, 128}) {
      for (const int64_t length : {1, 2, 15, 16, 17, 33, 200}) {
        const Context context(dim, length, kAttentionQueries, static_cast<uint64_t>(dim * length));
        const auto actual =
            run_kernel(*kernels, context, length - 1, consecutive(1), 0, context.query_count());
        for (int64_t query = 0; query < context.query_count(); ++query) {
          const auto expected = naive_attention(context, query);
          for (int64_t d = 0; d < dim; ++d) {
            ASSERT_NEAR(actual[static_cast<size_t>(query * dim + d)],
                        expected[static_cast<size_t>(d)], 1e-5)
                << kernels->name << " dim " << dim << " length " << length;
          }
        }
      }
    }
  }
}

TEST(Attention, DoesNotDependOnTheKernelSetNorOnWhichPositionsAreCommittedNorOnTheTile) {
  const std::vector<const KernelSet*> sets = present_sets();
  std::mt19937_64 random(11);
  for (const int64_t dim : {12, 64}) {
    for (const int64_t length : {1, 5, 16, 50, 130}) {
      const Context context(dim, length, kAttentionQueries, static_cast<uint64_t>(dim + length));
      const auto expected =
          run_kernel(*sets.back(), context, 0, consecutive(length), 0, kAttentionQueries);
      for (const KernelSet* kernels : sets) {
        for (int trial = 0; trial < 6; ++trial) {
          const auto committed = static_cast<int64_t>(random() % static_cast<uint64_t>(length));
          std::vector<int32_t> rows;  // a path with strangers between its rows
          for (int32_t row = 0; static_cast<int64_t>(rows.size()) < length - committed; ++row) {
            if (random() % 2 == 0) rows.push_back(row);
          }
          const auto first = static_cast<int64_t>(random() % kAttentionQueries);
          const auto last =
              first + 1 +
              static_cast<int64_t>(random() % static_cast<uint64_t>(kAttentionQueries - first));
          const auto actual = run_kernel(*kernels, context, committed, rows, first, last);
          EXPECT_TRUE(std::equal(actual.begin(), actual.end(), expected.begin() + first * dim))
              << kernels->name << " dim " << dim << " length " << length << " committed "
              << committed;
        }
      }
    }
  }
}

TEST(Attention, LargeScoresNeitherOverflowNorLeakTheOthers) {
  for (const KernelSet* kernels : present_sets()) {
    Context context(16, 40, 1, 3);
    for (float& x : context.queries) x = 0;
    context.queries[0] = 1e4f;
    for (int64_t p = 0; p < context.length; ++p) {
      context.keys[static_cast<size_t>(p * 16)] = float_to_half(p == 20 ? 30.0f : -30.0f);
    }
    const auto actual = run_kernel(*kernels, context, 39, consecutive(1), 0, 1);
    for (int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(actual[static_cast<size_t>(d)],
                half_to_float(context.values[static_cast<size_t>(20 * 16 + d)]));
    }
  }
}

}  // namespace
}  // namespace espalier::units::cpu
