// PostProcessor: the tokens that a tokenizer puts around a text (BOS, EOS), from the
// "post_processor" of tokenizer.json. Only the form for a single sequence is used. Immutable;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::text {

class PostProcessor {
 public:
  // Without a "post_processor", BOS and EOS follow add_bos and add_eos.
  // Ids must be below `vocab_size`.
  static Result<PostProcessor> make(const TokenizerData& data, int64_t vocab_size);

  std::vector<TokenId> process(std::vector<TokenId> ids, bool add_special_tokens) const;
  // A token to add, or nothing: here the ids of the text go.
  using Slot = std::optional<TokenId>;

 private:
  explicit PostProcessor(std::vector<Slot> slots) : slots_(std::move(slots)) {}
  std::vector<Slot> slots_;
};

}  // namespace espalier::text
