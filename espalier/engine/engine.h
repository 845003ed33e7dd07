// Engine: a model, loaded and compiled on one unit; the only place where formats, models, units and
// decoding meet. Everything that can be decided is decided in load(): programs, kernels, buckets,
// packed weights. Immutable afterwards. It lets go of the checkpoint's files when the model is
// compiled; the cpu unit has packed all weights by then, the reference unit goes on reading them.
//
// Sessions (engine/session.h) share an engine, but its executable runs one call at a time: sessions
// that generate at the same time need a lock of their caller. Knows token ids, not text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/engine/draft_network.h"
#include "espalier/formats/checkpoint.h"
#include "espalier/models/model.h"
#include "espalier/units/unit.h"

namespace espalier::engine {

struct EngineOptions {
  std::string unit = {};  // "": the default, the first of units::unit_names()
  int64_t window = 64;    // rows of one call, 1 to program::kMaxWindowRows
  int64_t context = 0;    // positions; 0: the model's own context
  units::CompileOptions compile = {};
  std::string drafter = {};  // a DSpark checkpoint of this model; "": none
};

// The KV lengths that a session moves through: 512 times powers of two (of four, eight, ... where
// two would need more than six), the last one tight.
std::vector<int64_t> buckets_of(int64_t context);

// A tensor of the checkpoint: kept for reports and for the dump after its file is closed.
struct TensorInfo {
  std::string name;            // as in the checkpoint, Hugging Face's
  std::vector<int64_t> shape;  // outermost first, rows before columns
  Encoding encoding;
  int64_t byte_count;  // as stored
};

// What the argmax head gives for each row: the largest logit of each subrange of the vocabulary.
struct ArgmaxShape {
  int64_t subrange_tokens = 0;
  int64_t subrange_count = 0;
};

class Engine {
 public:
  // Errors: what formats, models and units refuse; a window or context that the model does not
  // have; no memory.
  static Result<std::unique_ptr<const Engine>> load(formats::Checkpoint checkpoint,
                                                    const EngineOptions& options);
  static Result<std::unique_ptr<const Engine>> load(const std::string& path,
                                                    const EngineOptions& options);

  // Configuration, tokenizer data, chat template: everything but the weights.
  const formats::Checkpoint& checkpoint() const { return checkpoint_; }
  const models::Model& model() const { return model_; }
  const EngineOptions& options() const { return options_; }  // with unit and context filled in
  std::span<const int64_t> buckets() const { return buckets_; }
  // Tokens that end an answer, by generation configuration, configuration and tokenizer.
  std::span<const TokenId> end_tokens() const { return end_tokens_; }
  // Those that are computed with, by name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  // `bucket` is an index of buckets(). function() is the program's number for Executable::run.
  program::Program program(size_t bucket, program::Head head) const;
  size_t function(size_t bucket, program::Head head) const;
  const ArgmaxShape& argmax_shape() const { return argmax_shape_; }
  units::Executable& executable() const { return *executable_; }
  const DraftNetwork* draft_network() const { return draft_network_.get(); }  // nullptr: none
  // Channels of the hidden states that it reads of each row; 0 without it.
  int64_t tapped_channels() const;

 private:
  Engine(formats::Checkpoint checkpoint, models::Model model, const EngineOptions& options);

  formats::Checkpoint checkpoint_;
  models::Model model_;
  EngineOptions options_;
  std::vector<int64_t> buckets_;
  std::vector<TokenId> end_tokens_;
  std::vector<TensorInfo> tensors_;
  ArgmaxShape argmax_shape_;
  std::unique_ptr<const DraftNetwork> draft_network_;
  std::unique_ptr<units::Executable> executable_;
};

}  // namespace espalier::engine
