// Tiny models with random weights and odd widths, and a Runner that feeds tokens to an Executable:
// what the tests of a unit need to compare two ways of computing the same rows.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "espalier/program/builder.h"
#include "espalier/units/unit.h"

namespace espalier::units {

inline constexpr int64_t kTinyHidden = 72, kTinyVocab = 203, kTinySubrange = 50;

enum class TinyKind {
  kAttention,  // attention alone
  kHybrid,     // a convolution layer below it
  kWide        // whose feed-forward has so many panels that threads take them from each other
};

struct TinyModel {
  program::ProgramSet programs;
  Weights weights;

  // The function with this window, bucket and head; every row may be selected.
  size_t function(int64_t rows, int64_t kv_rows, program::Head head) const {
    for (size_t i = 0; i < programs.functions.size(); ++i) {
      const program::Program& f = programs.functions[i];
      if (f.rows == rows && f.kv_rows == kv_rows && f.head == head) return i;
    }
    check_failed(__FILE__, __LINE__, "no such function");
  }
};

// Layer "conv": gated short convolution (kernel 3, bias), gated SiLU feed-forward of `inner_width` channels.
inline program::ValueId tiny_conv_layer(program::Builder& b, program::ValueId x,
                                        program::ValueId gather, int64_t inner_width) {
  constexpr int64_t kHidden = kTinyHidden;
  b.scope("conv.");
  const auto normed = b.rms_norm("normed", x, b.vector("conv.norm", kHidden), 1e-5);
  const auto part = [&](const char* name, int64_t i) {
    return b.linear(name, normed,
                    b.matrix_rows("conv.in", 3 * kHidden, i * kHidden, kHidden, kHidden),
                    b.vector_part("conv.in_bias", 3 * kHidden, i * kHidden, kHidden));
  };
  const auto gate_in = part("b", 0), gate_out = part("c", 1), value = part("x", 2);
  const auto z = b.mul("z", gate_in, value);
  const auto y = b.short_conv("y", z, gather, b.short_conv_rows("conv", 3, kHidden),
                              b.matrix("conv.taps", kHidden, 3), b.vector("conv.bias", kHidden));
  const auto mixed =
      b.linear("out", b.mul("gated", gate_out, y), b.matrix("conv.out", kHidden, kHidden));
  x = b.add("residual", x, mixed);
  const auto inner = b.rms_norm("ffn_normed", x, b.vector("conv.ffn_norm", kHidden), 1e-5);
  const auto gate = b.linear("gate", inner, b.matrix("conv.gate", inner_width, kHidden));
  const auto up = b.linear("up", inner, b.matrix("conv.up", inner_width, kHidden));
  return b.add(
      "ffn_residual", x,
      b.linear("down", b.gated_silu("ffn", gate, up), b.matrix("conv.down", kHidden, inner_width)));
}

// Layer "attn": 6 heads on 2 KV heads of 12 channels, partly rotated, with norms on q and k; GELU
// feed-forward.
inline program::ValueId tiny_attention_layer(program::Builder& b, program::ValueId x,
                                             program::ValueId positions,
                                             program::ValueId ancestors) {
  constexpr int64_t kHidden = kTinyHidden, kHeads = 6, kKvHeads = 2, kHeadDim = 12,
                    kKvWidth = kKvHeads * kHeadDim;
  b.scope("attn.");
  const auto normed = b.rms_norm("normed", x, b.vector("attn.norm", kHidden), 1e-5);
  const auto project = [&](const char* name, int64_t width) {
    const std::string tensor = std::string("attn.") + name;
    return b.linear(name, normed, b.matrix(tensor, width, kHidden),
                    b.vector(tensor + "_bias", width));
  };
  const auto q =
      b.rms_norm("qn", project("q", kHeads * kHeadDim), b.vector("attn.q_norm", kHeadDim), 1e-5);
  const auto k = b.rms_norm("kn", project("k", kKvWidth), b.vector("attn.k_norm", kHeadDim), 1e-5);
  const auto v = project("v", kKvWidth);
  const std::vector<double> frequencies = {1.0, 0.3, 0.1, 0.03};
  const auto q_rotated = b.rope("qr", q, positions, kHeadDim, true, frequencies, 1.0);
  const auto k_rotated = b.rope("kr", k, positions, kHeadDim, true, frequencies, 1.0);
  const auto state = b.key_value("kv", kKvWidth);
  b.kv_write(k_rotated, v, state);
  const auto mixed =
      b.attention("mixed", q_rotated, ancestors, state, kHeads, kKvHeads, kHeadDim, 0.4);
  x = b.add("residual", x, b.linear("o", mixed, b.matrix("attn.o", kHidden, kHeads * kHeadDim)));
  const auto inner = b.layer_norm("ffn_normed", x, b.vector("attn.ffn_norm", kHidden),
                                  b.vector("attn.ffn_norm_bias", kHidden), 1e-5);
  const auto up = b.gelu("gelu", b.linear("up", inner, b.matrix("attn.up", 130, kHidden)), true);
  return b.add("ffn_residual", x, b.linear("down", up, b.matrix("attn.down", kHidden, 130)));
}

inline program::Program tiny_program(TinyKind kind, int64_t rows, int64_t kv_rows,
                                     program::Head head) {
  const std::string name = "window" + std::to_string(rows) + "_kv" + std::to_string(kv_rows) +
                           (head == program::Head::kArgmax ? "_argmax" : "_logits");
  program::Builder b(name, rows, kv_rows, rows, head);
  auto x = b.input("embeddings", {rows, kTinyHidden}, Encoding::kF32);
  const auto positions = b.input("positions", {rows, 1}, Encoding::kI32);
  const auto ancestors = b.input("ancestors", {rows, rows}, Encoding::kI32);
  const bool has_conv = kind != TinyKind::kAttention;
  const auto gather = has_conv ? b.input("conv_gather", {rows, 2}, Encoding::kI32) : program::kNone;
  const auto selected = b.input("selected", {rows, 1}, Encoding::kI32);
  if (has_conv) x = tiny_conv_layer(b, x, gather, kind == TinyKind::kWide ? 3000 : 100);
  x = tiny_attention_layer(b, x, positions, ancestors);
  b.scope("");
  x = b.rms_norm("final", b.gather_rows("rows", x, selected), b.vector("norm", kTinyHidden), 1e-5);
  const auto head_weight = b.matrix("embedding", kTinyVocab, kTinyHidden);
  if (head == program::Head::kArgmax) {
    b.head_argmax(x, head_weight, kTinySubrange);
  } else {
    b.head_logits(x, head_weight);
  }
  return b.finish();
}

// F32 tensors by name with their content.
inline Weights make_weights(
    const std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>>& tensors) {
  std::map<std::string, TensorView> views;
  std::vector<std::shared_ptr<const void>> owners;
  for (const auto& [name, tensor] : tensors) {
    const auto data = std::make_shared<const std::vector<float>>(tensor.second);
    views[name] = {.encoding = Encoding::kF32,
                   .shape = tensor.first,
                   .bytes = std::as_bytes(std::span(*data))};
    owners.push_back(data);
  }
  return Weights(std::move(views), std::move(owners));
}

// Matrices of variance 1 / columns, norms around 1, other vectors around 0.
inline Weights random_weights(const program::Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors;
  for (const program::Weight& weight : program.weights) {
    if (tensors.contains(weight.tensor)) continue;
    const bool is_vector = weight.tensor_rows == 1 || weight.columns == 1;
    const int64_t count = weight.tensor_rows * weight.columns;
    const bool is_norm = weight.tensor.ends_with("norm");
    std::vector<float> data(static_cast<size_t>(count));
    const float spread = is_vector ? 0.2f : 1.0f / std::sqrt(static_cast<float>(weight.columns));
    for (float& x : data) x = (is_norm ? 1.0f : 0.0f) + spread * normal(random);
    const auto shape = is_vector ? std::vector<int64_t>{count}
                                 : std::vector<int64_t>{weight.tensor_rows, weight.columns};
    tensors[weight.tensor] = {shape, std::move(data)};
  }
  return make_weights(tensors);
}

inline TinyModel tiny_model(TinyKind kind, const std::vector<int64_t>& windows,
                            const std::vector<int64_t>& buckets, uint64_t seed = 1) {
  TinyModel model;
  for (const int64_t rows : windows) {
    for (const int64_t kv_rows : buckets) {
      for (const auto head : {program::Head::kArgmax, program::Head::kLogits}) {
        model.programs.functions.push_back(tiny_program(kind, rows, kv_rows, head));
      }
    }
  }
  model.weights = random_weights(model.programs.functions.front(), seed);
  return model;
}

inline std::unique_ptr<Executable> compile(Unit& unit, const TinyModel& model,
                                           const CompileOptions& options) {
  auto executable = unit.compile(model.programs, model.weights, "embedding", options);
  if (!executable.ok()) ADD_FAILURE() << executable.error().message();
  return std::move(executable).value();
}

inline std::vector<int32_t> tiny_tokens(size_t count, uint64_t seed = 7) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % kTinyVocab);
  return tokens;
}

inline std::vector<int32_t> chain_parents(size_t rows) {
  std::vector<int32_t> parents(rows);
  std::iota(parents.begin(), parents.end(), -1);
  return parents;
}

inline std::vector<int32_t> rows_from(size_t first, size_t last) {
  std::vector<int32_t> rows(last - first);
  std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first));
  return rows;
}

// One sequence on one Executable.
class Runner {
 public:
  Runner(Executable& executable, const TinyModel& model, int64_t kv_rows)
      : executable_(executable), model_(model), state_(executable.create_state(kv_rows).value()) {}

  // Logits [rows, vocab] of a window of height `window`.
  std::vector<float> run(std::span<const int32_t> tokens, std::span<const int32_t> parents,
                         int64_t window) {
    std::vector<float> logits(tokens.size() * kTinyVocab);
    call(tokens, parents, window, program::Head::kLogits,
         {.max_values = {}, .max_indices = {}, .logits = logits, .taps = {}});
    return logits;
  }

  void call(std::span<const int32_t> tokens, std::span<const int32_t> parents, int64_t window,
            program::Head head, const CallOutputs& outputs, bool select = true,
            bool sees_whole_window = false) {
    const size_t rows = tokens.size();
    std::vector<float> embeddings(rows * kTinyHidden);
    std::vector<int32_t> positions(rows);
    const int64_t embedding = executable_.weight_index("embedding");
    for (size_t row = 0; row < rows; ++row) {
      executable_.read_weight_rows(embedding, tokens[row], 1,
                                   std::span(embeddings).subspan(row * kTinyHidden, kTinyHidden));
      positions[row] =
          static_cast<int32_t>(parents[row] < 0 ? state_->committed_length()
                                                : positions[static_cast<size_t>(parents[row])] + 1);
    }
    const std::vector<int32_t> selected = rows_from(0, select ? rows : 0);
    executable_.run(model_.function(window, state_->kv_rows(), head),
                    {.row_count = static_cast<int64_t>(rows),
                     .embeddings = embeddings,
                     .positions = positions,
                     .parents = parents,
                     .selected = selected,
                     .sees_whole_window = sees_whole_window},
                    *state_, outputs);
  }

  // Plain text in windows of `window` rows, all committed. Returns the logits of every token.
  std::vector<float> feed(std::span<const int32_t> tokens, int64_t window) {
    std::vector<float> all;
    for (size_t done = 0; done < tokens.size();) {
      const size_t rows = std::min(tokens.size() - done, static_cast<size_t>(window));
      const std::vector<float> logits =
          run(tokens.subspan(done, rows), chain_parents(rows), window);
      all.insert(all.end(), logits.begin(), logits.end());
      executable_.commit(*state_, rows_from(0, rows));
      done += rows;
    }
    return all;
  }

  void commit(const std::vector<int32_t>& path) { executable_.commit(*state_, path); }
  State& state() { return *state_; }
  void replace_state(std::unique_ptr<State> state) { state_ = std::move(state); }

 private:
  Executable& executable_;
  const TinyModel& model_;
  std::unique_ptr<State> state_;
};

}  // namespace espalier::units
