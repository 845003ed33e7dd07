// A small valid program with every kind of state, for tests to break: one convolution layer, one
// attention layer, an argmax head.
#pragma once

#include "espalier/program/builder.h"

namespace espalier::program {

// T = 8, bucket 32, S = 2, hidden 12, 2 heads of 6 over 1 KV head, vocabulary 25 in subranges
// of 10.
inline Program small_program(Head head = Head::kArgmax) {
  Builder builder("small", 8, 32, 2, head);
  const auto x = builder.input("embeddings", {8, 12}, Encoding::kF32);
  const auto positions = builder.input("positions", {8, 1}, Encoding::kI32);
  const auto ancestors = builder.input("ancestors", {8, 8}, Encoding::kI32);
  const auto gather = builder.input("conv_gather", {8, 2}, Encoding::kI32);
  const auto selected = builder.input("selected", {2, 1}, Encoding::kI32);

  builder.scope("layers.0.");
  const auto conv = builder.short_conv("conv", x, gather, builder.short_conv_rows("conv0", 3, 12),
                                       builder.matrix("conv.weight", 12, 3));
  builder.scope("layers.1.");
  const auto normed = builder.rms_norm("norm", conv, builder.vector("norm.weight", 12), 1e-5);
  const auto q = builder.linear("q", normed, builder.matrix("q.weight", 12, 12));
  const auto k_weight = builder.matrix_rows("kv.weight", 12, 0, 6, 12);
  const auto k_bias = builder.vector_part("kv.bias", 12, 0, 6);
  const auto k = builder.linear("k", normed, k_weight, k_bias);
  const auto v = builder.linear("v", normed, builder.matrix_rows("kv.weight", 12, 6, 6, 12));
  const auto rotated = builder.rope("rotated", q, positions, 6, false, {1.0, 0.25}, 1.0);
  const auto state = builder.key_value("kv1", 6);
  builder.kv_write(k, v, state);
  const auto mixed = builder.attention("attention", rotated, ancestors, state, 2, 1, 6, 0.5);
  const auto sum = builder.add("sum", conv, mixed);
  const auto rows = builder.gather_rows("rows", sum, selected);
  const auto vocabulary = builder.matrix("head.weight", 25, 12);
  if (head == Head::kArgmax) {
    builder.head_argmax(rows, vocabulary, 10);
  } else {
    builder.head_logits(rows, vocabulary);
  }
  return builder.finish();
}

}  // namespace espalier::program
