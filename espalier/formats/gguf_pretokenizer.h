// What the values of `tokenizer.ggml.pre` mean: one row for each name that llama.cpp writes and
// whose pipeline is known exactly. Constant table.
#pragma once

#include <string>

#include "espalier/base/json.h"
#include "espalier/base/result.h"

namespace espalier::formats {

struct GgufPretokenizer {
  Json normalizer;     // in tokenizer.json form; null: none
  Json pre_tokenizer;  // in tokenizer.json form
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

// An unknown name is an error that lists the known ones.
Result<GgufPretokenizer> gguf_pretokenizer(const std::string& name);

}  // namespace espalier::formats
