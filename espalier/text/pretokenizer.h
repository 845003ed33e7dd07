// PreTokenizer: cuts a normalised text into the pieces that the model merges within, from the
// "pre_tokenizer" of tokenizer.json. Some parts also rewrite the text (ByteLevel, Metaspace).
// Immutable; split() may be called from any thread.
#pragma once

#include <functional>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/text/sourced_text.h"

namespace espalier::text {

// A text and the pieces of it that are left: in order, none empty, with gaps where parts were
// removed.
struct PieceList {
  SourcedText text;
  std::vector<Span> pieces;
};

using PreTokenizerStep = std::function<Status(PieceList&)>;

class PreTokenizer {
 public:
  // `json` may be null: the text is one piece.
  static Result<PreTokenizer> make(const Json& json);

  Result<PieceList> split(SourcedText text) const;
  // Whether a part asks where in the input a piece begins, so that texts must be tracked.
  bool needs_sources() const { return needs_sources_; }

 private:
  PreTokenizer(std::vector<PreTokenizerStep> steps, bool needs_sources)
      : steps_(std::move(steps)), needs_sources_(needs_sources) {}
  std::vector<PreTokenizerStep> steps_;
  bool needs_sources_ = false;
};

}  // namespace espalier::text
