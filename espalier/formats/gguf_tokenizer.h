// Reads the tokenizer of a GGUF file into TokenizerData, in the vocabulary of tokenizer.json. GGUF
// names its pre-tokenizer only ("smollm"); the table in gguf_pretokenizer.h says what the names
// mean. Models: "gpt2" (byte-level BPE) and "llama" (SentencePiece BPE). Pure function.
#pragma once

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/formats/gguf.h"

namespace espalier::formats {

Result<TokenizerData> read_gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace espalier::formats
