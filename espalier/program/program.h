// Program: an immutable graph of coarse ops over static shapes. A model is written once, as a set
// of programs (one per window height, KV bucket and head) that share weights and states; units
// execute them, exporters translate them, the validator checks them, and all of them can be printed
// and parsed.
//
// Logical shapes are [rows, channels]; a unit picks its own layout. A program knows no file format
// and no device: weights are names with shapes, states are kinds with shapes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "espalier/base/dtype.h"

namespace espalier::program {

using ValueId = int32_t;
using WeightId = int32_t;
using StateId = int32_t;
inline constexpr int32_t kNone = -1;

struct Shape {
  int64_t rows = 0;
  int64_t channels = 0;
  bool operator==(const Shape&) const = default;
};

// One edge of the graph. `dtype` is kF32 for activations and kI32 for positions, indices and masks;
// what a unit computes in is its own affair.
struct Value {
  std::string name;
  Shape shape;
  Encoding dtype = Encoding::kF32;
  bool operator==(const Value&) const = default;
};

// A weight as an op reads it: rows [first_row, first_row + rows) of the checkpoint tensor `tensor`,
// read as a [rows, columns] matrix; a vector is [1, n]. Two ops that read the same rows share one
// Weight.
struct Weight {
  std::string tensor;
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t tensor_rows = 0;  // of the whole tensor, so that shapes can be checked against the file
  bool operator==(const Weight&) const = default;
};

enum class StateKind : uint8_t {
  // rows: the bucket (positions allocated); channels: kv_heads * head_dim, for K and for V
  kKeyValue,
  // rows: kernel - 1; channels: the conv width; the last committed rows of the conv's input
  kShortConv,
};

struct State {
  std::string name;
  StateKind kind = StateKind::kKeyValue;
  Shape shape;
  bool operator==(const State&) const = default;
};

enum class OpKind : uint8_t {
  kLinear,
  kRmsNorm,
  kLayerNorm,
  kRope,
  kShortConv,
  kAttention,
  kKvWrite,
  kGatedSilu,
  kGelu,
  kAdd,
  kMul,
  kGatherRows,
  kHeadArgmax,
  kHeadLogits,
  kMeanPool,
};

struct Attribute {
  std::string name;
  std::variant<int64_t, double, std::string, std::vector<double>> value;
  bool operator==(const Attribute&) const = default;
};

struct Op {
  OpKind kind = OpKind::kLinear;
  std::vector<ValueId> inputs{};
  std::vector<WeightId> weights{};
  StateId state = kNone;
  std::vector<Attribute> attributes{};  // in the order of the op table
  std::vector<ValueId> outputs{};

  // The attribute of that name; its absence is our bug (the validator runs before any unit).
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<double>& list(std::string_view name) const;
  bool operator==(const Op&) const = default;
};

// Semantics of the ops, per row r unless said otherwise. T is the window height, S the number of
// selected rows. Operands: values; weights; attributes; state -> outputs.
//
//   linear       x[T,K]; W[N,K], optional bias[1,N] -> y[T,N]
//                x W^T + bias. A bias may also be read as N rows of one column: a part of a vector.
//   rms_norm     x[T,C]; w[1,G]; epsilon -> y[T,C]
//                each group of G channels on its own (G divides C): x w / sqrt(mean(x^2) + epsilon)
//   layer_norm   x[T,C]; w[1,C], b[1,C]; epsilon -> y[T,C]
//                (x - mean) / sqrt(var + epsilon) w + b
//   rope         x[T,C], positions[T,1]; head_dim, style ("neox": pairs i, i + n; "interleaved":
//                pairs 2i, 2i + 1), frequencies (n values, radians per position), scale -> y[T,C]
//                pair i of each head rotated by position * frequencies[i] (in fp32), times scale;
//                channels of a head beyond 2n pass through
//   short_conv   z[T,C], conv_gather[T,k-1]; w[C,k], optional bias[1,C]; state -> y[T,C]
//                bias + w[c,k-1] z[r,c] + sum_j w[c,k-1-j] Z[gather[r,j-1],c], j = 1..k-1
//                (1 parent, 2 grandparent); Z = state rows ++ window rows. Stages z for commit.
//   attention    q[T,heads*head_dim], ancestors[T,T]; heads, kv_heads, head_dim, scale; state
//                -> y[T,heads*head_dim]
//                softmax over the committed positions and the row's ancestors inside the window,
//                itself included; head h reads kv head h / (heads / kv_heads)
//   kv_write     k[T,C], v[T,C]; state -> nothing
//                stages the rows for commit; must precede the attention that reads the state
//   gated_silu   gate[T,C], up[T,C] -> silu(gate) up
//   gelu         x[T,C]; approximation ("tanh" | "erf") -> gelu(x)
//   add, mul     a[T,C], b[T,C] -> elementwise
//   gather_rows  x[T,C], selected[S,1] -> y[S,C]
//                x[selected[s]]
//   head_argmax  x[S,C]; W[V,C]; subrange -> max[S,n], index[S,n], n = ceil(V / subrange)
//                index: i32, within the subrange, the lowest on ties
//   head_logits  x[S,C]; W[V,C] -> logits[S,V]
//   mean_pool    x[T,C], row_count[1,1] -> y[1,C]
//                mean of the first row_count rows

enum class Head : uint8_t { kArgmax, kLogits, kNone };

struct Program {
  std::string name;      // "window64_kv512_argmax"
  int64_t rows = 0;      // T, the window height
  int64_t kv_rows = 0;   // the bucket
  int64_t selected = 0;  // S, rows that the head is computed for, at most
  Head head = Head::kArgmax;
  std::vector<Value> values;
  std::vector<ValueId> inputs;   // embeddings, positions, ancestors, conv_gather, selected
  std::vector<ValueId> outputs;  // max and index, or logits, of the head; then tapped values [T, C]
  std::vector<State> states;
  std::vector<Weight> weights;
  std::vector<Op> ops;  // in execution order
  bool operator==(const Program&) const = default;

  const Value& value(ValueId id) const { return values.at(static_cast<size_t>(id)); }
  // The outputs behind those of the head: hidden states that somebody outside wants (a drafter).
  std::span<const ValueId> taps() const;
};

// Functions of one model. They share weights by (tensor, first_row, rows) and states by index:
// every function lists the same states in the same order, differing only in the bucket.
struct ProgramSet {
  std::vector<Program> functions;
};

}  // namespace espalier::program
