// DraftNetwork: a DSpark checkpoint, compiled on the unit of its target: programs for context rows
// and for blocks, the target's head over the draft vocabulary, and the Markov head. Immutable, but
// its executable runs one call at a time. Sessions draft with it through DSparkDrafter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/base/weights.h"
#include "espalier/models/dspark.h"
#include "espalier/models/model.h"
#include "espalier/units/unit.h"

namespace espalier::engine {

struct DraftNetworkOptions {
  units::CompileOptions compile = {};
  int64_t window = 64;                // rows of the target's calls
  std::vector<int64_t> buckets = {};  // of the target
};

class DraftNetwork {
 public:
  // `path`: what formats::open_checkpoint takes. `weights` are the target's, which `unit` compiles
  // too: both then share its threads. Errors: a checkpoint
  // that is no DSpark or another target's, a damaged one, no memory.
  static Result<std::unique_ptr<const DraftNetwork>> load(const std::string& path,
                                                          const models::Model& target,
                                                          const Weights& weights, units::Unit& unit,
                                                          const DraftNetworkOptions& options);

  const models::DSpark& model() const { return model_; }
  units::Executable& executable() const { return *executable_; }
  const std::vector<int64_t>& buckets() const { return buckets_; }
  int64_t window() const { return window_; }
  // Numbers of the programs for Executable::run.
  size_t context_function(size_t bucket) const { return 2 * bucket; }
  size_t block_function(size_t bucket) const { return 2 * bucket + 1; }

  TokenId token(int64_t draft_row) const { return tokens_[static_cast<size_t>(draft_row)]; }
  // What the token before adds: w2(row) · w1(token), of [markov_rank] each.
  std::span<const float> w1(TokenId token) const { return markov_row(w1_, token); }
  std::span<const float> w2(int64_t draft_row) const { return markov_row(w2_, draft_row); }

 private:
  DraftNetwork() = default;
  Status read_markov(const Weights& weights);
  Status read_tokens(const Weights& weights);
  std::span<const float> markov_row(const std::vector<float>& matrix, int64_t row) const {
    return std::span(matrix).subspan(static_cast<size_t>(row * model_.markov_rank),
                                     static_cast<size_t>(model_.markov_rank));
  }

  models::DSpark model_;
  std::vector<int64_t> buckets_;
  int64_t window_ = 0;
  std::unique_ptr<units::Executable> executable_;
  std::vector<TokenId> tokens_;  // [draft_rows]
  std::vector<float> w1_, w2_;   // [vocab, rank], [draft_rows, rank]
};

}  // namespace espalier::engine
