// Model: a checkpoint's configuration turned into what the engine needs to know and a function that
// writes programs. Each architecture is one file and one row in models/registry.cc. Immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"

namespace espalier::models {

// The shape of one function of the program set.
struct FunctionShape {
  int64_t rows = 64;      // T
  int64_t kv_rows = 512;  // bucket
  int64_t selected = 1;   // S
  program::Head head = program::Head::kArgmax;
  // Layers, counted from 0, whose residual stream afterwards is an output, in this order.
  std::vector<int64_t> taps = {};
};

// Tensors whose rows stand in rotated pairs, 2i and 2i + 1 of a head, where Hugging Face has i and
// i + n: q and k of the GGUF files that say "llama".
struct PairedRows {
  std::vector<std::string> tensors;  // matrices and their biases
  int64_t head_rows = 0;
  int64_t rotated_rows = 0;  // of a head, the first ones
};

struct Model {
  std::string architecture;  // model_type of the configuration, "llama"
  int64_t vocab_size = 0;    // rows of the embedding table
  int64_t hidden_size = 0;
  int64_t layer_count = 0;
  int64_t context_length = 0;                 // positions
  std::string context_reason;                 // what ends it before the configuration's word, or ""
  std::string embedding_tensor;               // [vocab_size, hidden_size]
  std::string head_tensor;                    // the same name where the head is tied
  std::vector<std::string> required_tensors;  // all tensors of the checkpoint that programs read
  PairedRows paired_rows;                     // empty where all rows are as Hugging Face has them
  std::function<program::Program(const FunctionShape&)> build;
};

// `config` has the keys of a Hugging Face config.json (formats/ writes the same keys for GGUF
// files, and "rope_interleaved": true where q and k rows are stored permuted). `weights` settles
// what the configuration leaves open (tied head, biases, widths) and is checked: every tensor that
// the programs read exists with the right shape.
Result<Model> make_model(const Json& config, const Weights& weights);

// The architectures that make_model knows, for messages and `espalier doctor`.
std::vector<std::string> known_architectures();

}  // namespace espalier::models
