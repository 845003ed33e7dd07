// Attention over K and V in 8 bits: scores and weighted sums are matrix products of the kernels that multiply weights,
// so every kernel set has it and equals the others bit for bit. Semantics: docs/numerics.md.
//
// A weighted sum runs over chunks of 512 absolute positions, each an exact integer sum rounded once, and the chunks are
// added in order. So a query cannot see which positions are committed and which are rows of the window, if its chunks
// hold its ancestors where their positions are: assemble_chunks() puts them there.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/units/cpu/kernels.h"
#include "espalier/units/cpu/kv_int8.h"

namespace espalier::units::cpu {

inline constexpr int64_t kInt8Queries = 12;  // of one tile

// What the queries of one KV head share.
struct Int8Head {
  int64_t head;
  int64_t head_dim;
  float scale;
  const Int8KeyValueRows& kv;
  int64_t committed;  // positions of kv
  const Int8KeyValueRows& window;
};

// Sizes of what attend_int8() works in, in floats and bytes.
struct Int8Scratch {
  int64_t score_stride, window_stride, output_stride;
  int64_t floats, chunk_bytes;
  Int8Scratch(int64_t kv_rows, int64_t window_rows, int64_t head_dim);
};

// Chunks from the one that the committed positions end in: those positions, and behind them the rows of `path`.
void assemble_chunks(const Int8Head& head, std::span<const int32_t> path, std::byte* chunks);

// Queries of one KV head, at most kInt8Queries, whose paths are beginnings of the one that `chunks` was assembled for.
// The operands have room for kInt8Queries rows of head_dim and of kChunkPositions columns, in two planes.
void attend_int8(const KernelSet& kernels, const Int8Head& head,
                 std::span<const AttentionQuery> queries, const std::byte* chunks,
                 Activations& query_operand, Activations& weight_operand, const Int8Scratch& sizes,
                 float* scratch);

}  // namespace espalier::units::cpu
