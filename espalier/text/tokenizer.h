// Tokenizer: text <-> token ids, equal to the Hugging Face `tokenizers` library for byte-level BPE
// and for SentencePiece BPE. The way of a text: added tokens are cut out (added_tokens.h), the rest
// is normalised (normalizer.h), cut into pieces (pretokenizer.h), merged (bpe.h,
// sentencepiece_bpe.h) and framed with BOS and EOS (post_processor.h).
// Immutable after construction; every method may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/text/decoder.h"
#include "espalier/text/sourced_text.h"

namespace espalier::text {

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS and EOS by the tokenizer's own rule
  // Control tokens match in the text; false for text of a user. Control are `special` tokens and
  // those in the form of a tag (text/added_tokens.h); other added tokens always match.
  bool parse_special = true;
};

class Tokenizer {
 public:
  static Result<Tokenizer> make(TokenizerData data);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Text must be valid UTF-8; otherwise an error names the byte offset.
  Result<std::vector<TokenId>> encode(std::string_view text,
                                      const EncodeOptions& options = {}) const;
  // The same for a text whose ranges `user_text` (ascending, disjoint) come from a user: no control
  // token matches inside or across the border of one. All other rules see the whole text.
  Result<std::vector<TokenId>> encode_mixed(std::string_view text, std::span<const Span> user_text,
                                            const EncodeOptions& options) const;

  // Bytes of one token as the detokenizer joins them; special tokens give their literal text.
  // The exact decoder rules (leading space of SentencePiece) are in decode() and
  // text/detokenizer.h.
  std::string token_bytes(TokenId id) const;
  // As the `tokenizers` library's decode(): invalid UTF-8 becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;
  // The two halves of decode(), for text/detokenizer.h: a stream through the decoder, and what goes
  // into it for an id; nothing for ids without a token and for special tokens that are skipped.
  DecodeStream start_decoding() const;
  std::optional<std::string> decoder_text(TokenId id, bool skip_special_tokens) const;

  int64_t vocab_size() const;  // ids run from 0 to vocab_size - 1
  std::optional<TokenId> token_id(std::string_view piece) const;  // by literal vocabulary or added
                                                                  // text
  std::string piece(TokenId id) const;  // literal vocabulary entry ("Ġthe")
  bool is_special(TokenId id) const;
  const TokenizerData& data() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier::text
