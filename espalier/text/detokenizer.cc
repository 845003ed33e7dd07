#include "espalier/text/detokenizer.h"

#include <optional>

namespace espalier::text {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer),
      skip_special_tokens_(skip_special_tokens),
      stream_(tokenizer.start_decoding()) {}

std::string Detokenizer::push(TokenId id) {
  const std::optional<std::string> text = tokenizer_->decoder_text(id, skip_special_tokens_);
  return text ? stream_.push(*text) : std::string();
}

std::string Detokenizer::finish() { return stream_.finish(); }

}  // namespace espalier::text
