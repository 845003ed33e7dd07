// Detokenizer: token ids in, text out, one id at a time. What it has emitted is always valid UTF-8
// and never changes; bytes of an unfinished sequence wait for the next token, finish() emits them
// as U+FFFD. With byte fallback a run of byte tokens waits for its end, because one invalid byte
// spoils all of it. All pieces joined equal Tokenizer::decode of all ids. One per stream; refers
// to its tokenizer.
#pragma once

#include <string>

#include "espalier/text/tokenizer.h"

namespace espalier::text {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  std::string push(TokenId id);  // newly finished text, may be empty
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  DecodeStream stream_;
};

}  // namespace espalier::text
