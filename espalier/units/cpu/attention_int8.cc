#include "espalier/units/cpu/attention_int8.h"

#include <algorithm>
#include <array>

#include "espalier/base/check.h"
#include "espalier/units/cpu/attention_layout.h"
#include "espalier/units/cpu/panel_layout.h"

namespace espalier::units::cpu {
namespace {

// One tile at work.
class Tile {
 public:
  Tile(const KernelSet& kernels, const Int8Head& head, std::span<const AttentionQuery> queries,
       const Int8Scratch& sizes, float* scratch)
      : kernels_(kernels),
        head_(head),
        queries_(queries),
        sizes_(sizes),
        scores_(scratch),
        window_scores_(scores_ + kInt8Queries * sizes.score_stride),
        outputs_(window_scores_ + kInt8Queries * sizes.window_stride),
        part_(outputs_ + kInt8Queries * sizes.output_stride) {}

  void score(Activations& operand);
  void weigh(const std::byte* chunks, Activations& operand);

 private:
  int64_t count() const { return static_cast<int64_t>(queries_.size()); }
  int64_t length(const AttentionQuery& query) const { return head_.committed + query.path_length; }
  void multiply(const LinearLayout& weights, const Activations& x, float* y, int64_t stride) const {
    kernels_.linear(PackedLinear::over(weights), x, count(), 0, panels_of(weights.rows), y, stride);
  }

  const KernelSet& kernels_;
  const Int8Head& head_;
  const std::span<const AttentionQuery> queries_;
  const Int8Scratch& sizes_;
  float* const scores_;         // [queries, score_stride] by absolute position
  float* const window_scores_;  // [queries, window_stride] by window row
  float* const outputs_;        // [queries, output_stride]
  float* const part_;           // likewise: the scaled queries, later what a chunk adds
};

// Scores by absolute position.
void Tile::score(Activations& operand) {
  int64_t window_rows = 0;
  for (int64_t m = 0; m < count(); ++m) {
    const AttentionQuery& query = queries_[static_cast<size_t>(m)];
    window_rows = std::max<int64_t>(window_rows, query.path[query.path_length - 1] + 1);
    for (int64_t d = 0; d < head_.head_dim; ++d)
      part_[m * sizes_.output_stride + d] = query.query[d] * head_.scale;
  }
  kernels_.quantize_rows(part_, sizes_.output_stride, 0, count(), operand);
  if (head_.committed > 0)
    multiply(head_.kv.keys(head_.head, head_.committed), operand, scores_, sizes_.score_stride);
  multiply(head_.window.keys(head_.head, window_rows), operand, window_scores_,
           sizes_.window_stride);
  for (int64_t m = 0; m < count(); ++m) {
    const AttentionQuery& query = queries_[static_cast<size_t>(m)];
    for (int64_t i = 0; i < query.path_length; ++i) {
      scores_[m * sizes_.score_stride + head_.committed + i] =
          window_scores_[m * sizes_.window_stride + query.path[i]];
    }
  }
}

// Softmax, the scales of V, and the weighted sums.
void Tile::weigh(const std::byte* chunks, Activations& operand) {
  int64_t longest = 0;
  std::array<float, kInt8Queries> totals;
  for (const AttentionQuery& query : queries_) longest = std::max(longest, length(query));
  for (int64_t m = 0; m < count(); ++m) {
    const AttentionQuery& query = queries_[static_cast<size_t>(m)];
    float* weights = scores_ + m * sizes_.score_stride;
    totals[static_cast<size_t>(m)] = kernels_.exponentials(weights, length(query));
    kernels_.mul(weights, head_.kv.value_scales(head_.head), head_.committed, weights);
    for (int64_t i = 0; i < query.path_length; ++i)
      weights[head_.committed + i] *= head_.window.value_scales(head_.head)[query.path[i]];
    std::fill(weights + length(query), weights + round_up(longest, kChunkPositions), 0.0f);
  }
  const int64_t first_assembled = head_.committed / kChunkPositions;
  for (int64_t chunk = 0; chunk * kChunkPositions < longest; ++chunk) {
    kernels_.quantize_rows(scores_ + chunk * kChunkPositions, sizes_.score_stride, 0, count(),
                           operand);
    LinearLayout values = head_.kv.values(head_.head, std::min(chunk, first_assembled));
    if (chunk >= first_assembled)
      values.panels = chunks + (chunk - first_assembled) * head_.kv.chunk_bytes();
    multiply(values, operand, chunk == 0 ? outputs_ : part_, sizes_.output_stride);
    if (chunk == 0) continue;
    kernels_.add(outputs_, part_, count() * sizes_.output_stride, outputs_);
  }
  for (int64_t m = 0; m < count(); ++m) {
    float* output = queries_[static_cast<size_t>(m)].output;
    for (int64_t d = 0; d < head_.head_dim; ++d)
      output[d] = outputs_[m * sizes_.output_stride + d] / totals[static_cast<size_t>(m)];
  }
}

}  // namespace

Int8Scratch::Int8Scratch(int64_t kv_rows, int64_t window_rows, int64_t head_dim)
    : score_stride(round_up(kv_rows + window_rows, kChunkPositions)),
      window_stride(round_up_to_lanes(window_rows)),
      output_stride(round_up_to_lanes(head_dim)),
      floats(kInt8Queries * (score_stride + window_stride + 2 * output_stride)),
      chunk_bytes((window_rows / kChunkPositions + 2) * output_stride / kPanelOutputs *
                  int8_panel_bytes(kChunkPositions)) {}

void assemble_chunks(const Int8Head& head, std::span<const int32_t> path, std::byte* chunks) {
  const auto length = static_cast<int64_t>(path.size());
  const int64_t first = head.committed / kChunkPositions, bytes = head.kv.chunk_bytes();
  const int64_t last = (head.committed + length - 1) / kChunkPositions;
  // Where nothing is committed, any chunk will do: it brings the scales, and its positions have weight 0.
  for (int64_t chunk = first; chunk <= last; ++chunk) {
    const bool has_committed = chunk * kChunkPositions < head.committed;
    const LinearLayout source = head.kv.values(head.head, has_committed ? chunk : 0);
    std::copy_n(source.panels, bytes, chunks + (chunk - first) * bytes);
  }
  for (int64_t i = 0; i < length; ++i) {
    const int64_t position = head.committed + i;
    head.window.copy_value(head.head, path[static_cast<size_t>(i)],
                           chunks + (position / kChunkPositions - first) * bytes,
                           position % kChunkPositions);
  }
}

void attend_int8(const KernelSet& kernels, const Int8Head& head,
                 std::span<const AttentionQuery> queries, const std::byte* chunks,
                 Activations& query_operand, Activations& weight_operand, const Int8Scratch& sizes,
                 float* scratch) {
  CHECK_LE(static_cast<int64_t>(queries.size()), kInt8Queries);
  Tile tile(kernels, head, queries, sizes, scratch);
  tile.score(query_operand);
  tile.weigh(chunks, weight_operand);
}

}  // namespace espalier::units::cpu
