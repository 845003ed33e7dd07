// Tokenizer: text <-> token ids, equal to the Hugging Face `tokenizers` library for byte-level BPE and for
// SentencePiece BPE. Immutable after construction; every method may be called from any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::text {

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS and EOS by the tokenizer's own rule
  bool parse_special = true;       // added tokens that are `special` match in the text; user text: false
};

class Tokenizer {
 public:
  static Result<Tokenizer> make(TokenizerData data);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Text must be valid UTF-8; otherwise an error names the byte offset.
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Bytes of one token as the detokenizer joins them; special tokens give their literal text.
  // The exact decoder rules (leading space of SentencePiece) are in decode() and text/detokenizer.h.
  std::string token_bytes(TokenId id) const;
  // As the `tokenizers` library's decode(): invalid UTF-8 becomes U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;

  int64_t vocab_size() const;                                // ids run from 0 to vocab_size - 1
  std::optional<TokenId> token_id(std::string_view piece) const;  // by literal vocabulary or added text
  std::string piece(TokenId id) const;                       // literal vocabulary entry ("Ġthe")
  bool is_special(TokenId id) const;
  const TokenizerData& data() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier::text
