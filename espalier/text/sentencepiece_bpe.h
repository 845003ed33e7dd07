// SentencePieceBpe: byte-pair encoding by the scores of pieces, as the SentencePiece library and
// llama.cpp do it: of all neighbours whose concatenation is a piece, those with the highest score
// merge first, the leftmost of equals. What no piece covers becomes byte tokens, or one unknown
// token. Refers to its TokenizerData, which must outlive it. Immutable; encode() may be called from
// any thread.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/text/bpe.h"

namespace espalier::text {

class SentencePieceBpe {
 public:
  static Result<SentencePieceBpe> make(const TokenizerData& data);

  // Appends the tokens of a normalised text (valid UTF-8, not empty). Control, byte and
  // user-defined tokens never come from merging.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  explicit SentencePieceBpe(const TokenizerData& data) : data_(&data) {}
  void append_uncovered(std::string_view text, std::vector<TokenId>& ids) const;

  const TokenizerData* data_;
  Vocabulary vocabulary_;  // all tokens
  Vocabulary pieces_;      // those that merging can make
  size_t longest_piece_ = 0;
  std::array<TokenId, 256> byte_tokens_{};  // -1 where absent
};

}  // namespace espalier::text
