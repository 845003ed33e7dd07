// Normalizer: the first step of a tokenizer, from the "normalizer" of tokenizer.json. Each part
// rewrites the text; a Sequence runs in order. Immutable; normalize() may be called from any
// thread.
#pragma once

#include <functional>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/text/sourced_text.h"

namespace espalier::text {

using NormalizerStep = std::function<Status(SourcedText&)>;

class Normalizer {
 public:
  // `json` may be null: the text stays as it is.
  static Result<Normalizer> make(const Json& json);

  Status normalize(SourcedText& text) const;
  bool empty() const { return steps_.empty(); }

 private:
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}
  std::vector<NormalizerStep> steps_;
};

}  // namespace espalier::text
