// The attention kernel over a 16-lane vector type V: up to kAttentionQueries queries on one KV
// head.
//
// A score is a sequential sum over head_dim; the maximum is taken first; exponentials are summed by
// lane = absolute position mod 16, blocks in order; the weighted sum of V runs over the positions
// in order. Scores of window rows are put where their absolute positions are before anything is
// summed, so a query cannot see how its ancestors were packed, nor whether they are committed yet.
// Memory: attention_layout.h; contract: kernels.h.
#pragma once

#include <cstdint>
#include <limits>

#include "espalier/base/vec16.h"
#include "espalier/base/vec_math.h"
#include "espalier/units/cpu/attention_layout.h"
#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/row_kernels.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::units::cpu {

// Where the pieces of the scratch lie, for one tile.
struct AttentionScratch {
  float* queries;  // [head_dim, queries] scaled, transposed: the broadcasts of one d are neighbours
  float* scores;   // [queries, score_stride] by absolute position
  int64_t score_stride;
  float* window_scores;  // [queries, window_stride] by window row
  int64_t window_stride;
};

template <class V>
AttentionScratch divide_attention_scratch(const AttentionTile& tile) {
  int64_t longest_path = 0, window_rows = 0;
  for (const AttentionQuery& query : tile.queries) {
    const int64_t rows =
        query.path[query.path_length - 1] + 1;  // parents come before their children
    if (longest_path < query.path_length) longest_path = query.path_length;
    if (window_rows < rows) window_rows = rows;
  }
  const auto queries = static_cast<int64_t>(tile.queries.size());
  AttentionScratch scratch;
  scratch.score_stride = round_up_to_lanes(tile.committed + longest_path);
  scratch.window_stride = round_up_to_lanes(window_rows);
  scratch.queries = tile.scratch;
  scratch.scores = scratch.queries + queries * tile.head_dim;
  scratch.window_scores = scratch.scores + queries * scratch.score_stride;
  return scratch;
}

// Vectors that are worked on at once for every query: as many as the registers hold sums for, so that a broadcast
// serves several of them and enough sums are under way to hide the latency of fma.
template <class V, int kQueries>
inline constexpr int kVectorsAtOnce = V::kSumRegisters / kQueries >= 4   ? 4
                                      : V::kSumRegisters / kQueries >= 2 ? 2
                                                                         : 1;

// scores[m, p] = queries[:, m] . keys[p] for kVectors blocks of 16 positions.
template <class V, int kQueries, int kVectors>
void score_some_blocks(const float* queries, const uint16_t* keys, int64_t head_dim, float* scores,
                       int64_t score_stride) {
  V sums[kQueries * kVectors];
  unrolled<kQueries * kVectors>([&](auto i) ESPALIER_INLINE { sums[i] = V::zero(); });
  for (int64_t d = 0; d < head_dim; ++d, queries += kQueries, keys += kLanes) {
    V key[kVectors];
    unrolled<kVectors>(
        [&](auto i) ESPALIER_INLINE { key[i] = V::load_half(keys + i * head_dim * kLanes); });
    unrolled<kQueries>([&](auto m) ESPALIER_INLINE {
      const V query = V::broadcast(queries[m]);
      unrolled<kVectors>([&](auto i) ESPALIER_INLINE {
        V& sum = sums[m * kVectors + i];
        sum = fma(query, key[i], sum);
      });
    });
  }
  unrolled<kQueries * kVectors>([&](auto i) ESPALIER_INLINE {
    sums[i].store(scores + i / kVectors * score_stride + i % kVectors * kLanes);
  });
}

// The same for `blocks` blocks.
template <class V, int kQueries>
void score_blocks(const float* queries, const uint16_t* keys, int64_t head_dim, int64_t blocks,
                  float* scores, int64_t score_stride) {
  constexpr int kVectors = kVectorsAtOnce<V, kQueries>;
  int64_t block = 0;
  for (; block + kVectors <= blocks; block += kVectors) {
    score_some_blocks<V, kQueries, kVectors>(queries, keys + block * head_dim * kLanes, head_dim,
                                             scores + block * kLanes, score_stride);
  }
  for (; block < blocks; ++block) {
    score_some_blocks<V, kQueries, 1>(queries, keys + block * head_dim * kLanes, head_dim,
                                      scores + block * kLanes, score_stride);
  }
}

// Turns scores into exp(score - maximum) in place and returns their sum.
template <class V>
float exponentials(float* scores, int64_t count) {
  V largest = V::broadcast(-std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < count; i += kLanes) {
    largest = max(largest,
                  load_padded<V>(scores + i, count - i, -std::numeric_limits<float>::infinity()));
  }
  const V maximum = V::broadcast(reduce_max(largest));
  V total = V::zero();
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    store_first(exp(load_padded<V>(scores + i, left) - maximum), left, scores + i);
    total = total + load_padded<V>(scores + i, left);
  }
  return reduce_add(total);
}

// sums[m, i] += weights[m][at] * value[16 i .. 16 i + 16), `value` being that of one position.
template <class V, int kQueries, int kVectors>
[[gnu::always_inline]] inline void add_position(const uint16_t* value, const float* const* weights,
                                                int64_t at, V* sums) {
  V vectors[kVectors];
  unrolled<kVectors>([&](auto i)
                         ESPALIER_INLINE { vectors[i] = V::load_half(value + i * kLanes); });
  unrolled<kQueries>([&](auto m) ESPALIER_INLINE {
    const V weight = V::broadcast(weights[m][at]);
    unrolled<kVectors>([&](auto i) ESPALIER_INLINE {
      V& sum = sums[m * kVectors + i];
      sum = fma(weight, vectors[i], sum);
    });
  });
}

// outputs[m, d .. d + 16 kVectors) = sum over positions of weight * value / total.
template <class V, int kQueries, int kVectors>
void weigh_values(const AttentionTile& tile, const AttentionScratch& scratch, const float* totals,
                  int64_t d) {
  const int64_t stride = value_stride(tile.head_dim);
  V sums[kQueries * kVectors];
  const float* weights[kQueries];
  unrolled<kQueries>([&](auto m) ESPALIER_INLINE {
    weights[m] = scratch.scores + m * scratch.score_stride;
    unrolled<kVectors>([&](auto i) ESPALIER_INLINE { sums[m * kVectors + i] = V::zero(); });
  });
  for (int64_t p = 0; p < tile.committed; ++p)
    add_position<V, kQueries, kVectors>(tile.values + p * stride + d, weights, p, sums);
  unrolled<kQueries>([&](auto m) ESPALIER_INLINE {
    const AttentionQuery& query = tile.queries[m];
    const float* path_weights = weights[m] + tile.committed;
    for (int64_t i = 0; i < query.path_length; ++i) {
      add_position<V, 1, kVectors>(tile.window_values + query.path[i] * stride + d, &path_weights,
                                   i, sums + m * kVectors);
    }
    unrolled<kVectors>([&](auto i) ESPALIER_INLINE {
      store_first(sums[m * kVectors + i] / V::broadcast(totals[m]), tile.head_dim - d - i * kLanes,
                  query.output + d + i * kLanes);
    });
  });
}

template <class V, int kQueries>
void attention_of_queries(const AttentionTile& tile) {
  const AttentionScratch scratch = divide_attention_scratch<V>(tile);
  for (int m = 0; m < kQueries; ++m) {
    for (int64_t d = 0; d < tile.head_dim; ++d) {
      scratch.queries[d * kQueries + m] =
          tile.queries[static_cast<size_t>(m)].query[d] * tile.scale;
    }
  }
  score_blocks<V, kQueries>(scratch.queries, tile.keys, tile.head_dim,
                            round_up_to_lanes(tile.committed) / kLanes, scratch.scores,
                            scratch.score_stride);
  score_blocks<V, kQueries>(scratch.queries, tile.window_keys, tile.head_dim,
                            scratch.window_stride / kLanes, scratch.window_scores,
                            scratch.window_stride);
  float totals[kQueries];
  for (int m = 0; m < kQueries; ++m) {
    const AttentionQuery& query = tile.queries[static_cast<size_t>(m)];
    float* scores = scratch.scores + m * scratch.score_stride;
    for (int64_t i = 0; i < query.path_length; ++i) {
      scores[tile.committed + i] = scratch.window_scores[m * scratch.window_stride + query.path[i]];
    }
    totals[m] = exponentials<V>(scores, tile.committed + query.path_length);
  }
  constexpr int kVectors = kVectorsAtOnce<V, kQueries>;
  int64_t d = 0;
  for (; d + (kVectors - 1) * kLanes < tile.head_dim; d += kVectors * kLanes)
    weigh_values<V, kQueries, kVectors>(tile, scratch, totals, d);
  for (; d < tile.head_dim; d += kLanes) weigh_values<V, kQueries, 1>(tile, scratch, totals, d);
}

template <class V>
void attention_tile(const AttentionTile& tile) {
  static_assert(kAttentionQueries == 6);
  using Function = void (*)(const AttentionTile&);
  constexpr Function kByQueries[] = {attention_of_queries<V, 1>, attention_of_queries<V, 2>,
                                     attention_of_queries<V, 3>, attention_of_queries<V, 4>,
                                     attention_of_queries<V, 5>, attention_of_queries<V, 6>};
  kByQueries[tile.queries.size() - 1](tile);
}

}  // namespace espalier::units::cpu
