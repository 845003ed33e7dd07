// DSpark: a small network that drafts a block of tokens at once from the hidden states of its
// target. (arXiv 2607.05147; the published checkpoints' names and configuration keys.)
//
//   context row j   c = rms(fc · concat(taps of position j); hidden_norm)
//   block           h = [embed(last token), embed(mask), ...], block_size rows
//   each layer      h += o(attention(q(rms(h)), k and v of all context rows and all block rows))
//                   h += down(silu(gate(rms(h))) * up(rms(h)))
//   slot k          logits(h_k) + W2 · W1[token before] propose the token k + 1 after the last
//
// It has a state of its own, of committed context rows. Head and embeddings are the target's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/models/model.h"

namespace espalier::models {

// The name under which programs read the head: rows of the target's, those that can be drafted.
inline constexpr const char* kDraftHeadTensor = "draft_head.weight";

struct DSpark {
  std::string prefix;  // of the tensors' names: "", or "model."
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;   // of the target
  int64_t draft_rows = 0;   // of the head; vocab_size without a draft vocabulary
  int64_t block_size = 0;   // tokens that a block proposes
  int64_t markov_rank = 0;  // columns of W1 [vocab_size] and W2 [draft_rows]
  int64_t mask_token = 0;
  std::vector<int64_t> target_layers;  // tapped, in the order of the columns of fc
  bool has_draft_vocabulary = false;   // tensor "d2t" names the token of each row

  // Takes taps as its embeddings, writes the context rows' K and V; no head.
  std::function<program::Program(int64_t rows, int64_t kv_rows)> build_context;
  // Takes embeddings of a block, in a call whose rows see all of the window; logits of all rows.
  std::function<program::Program(int64_t kv_rows)> build_block;
};

// `config` and `weights` of the drafter; `target` settles widths and vocabulary. Errors: what is
// not DSpark, or another target's.
Result<DSpark> make_dspark(const Json& config, const Weights& weights, const Model& target);

}  // namespace espalier::models
