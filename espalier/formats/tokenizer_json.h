// Reads tokenizer.json, and what tokenizer_config.json adds to it, into TokenizerData. Ids of added
// tokens, and BOS and EOS, come out as the `tokenizers` library and transformers assign them. BPE
// models only. Pure function; text/ checks and uses the pipeline parts, which are passed on as they
// are.
#pragma once

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::formats {

// `tokenizer_config` may be null. Padding and truncation are not part of encoding here.
Result<TokenizerData> read_tokenizer_json(const Json& tokenizer_json, const Json& tokenizer_config);

}  // namespace espalier::formats
