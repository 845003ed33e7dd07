// Token ids without meaning, the same in every run: a call costs the same whatever they are.
#pragma once

#include <cstddef>
#include <vector>

#include "espalier/base/tokenizer_data.h"

namespace espalier::measure {

inline std::vector<TokenId> some_tokens(int64_t count, int64_t vocab_size) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<TokenId>((i * 2654435761U + 17) % static_cast<size_t>(vocab_size));
  }
  return tokens;
}

}  // namespace espalier::measure
