// Checkpoint: everything that a model directory, a safetensors file's directory or a GGUF file
// holds, in one vocabulary: Hugging Face configuration keys, tensor names and tokenizer pipeline,
// whatever the format. Opening maps files and reads metadata; tensor bytes are not touched.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/base/weights.h"

namespace espalier::formats {

struct Checkpoint {
  std::string path;
  std::vector<std::string> files;  // all that it was read from
  std::string format;              // "gguf", "safetensors"
  std::string name;                // for people; the file's own name where it has one
  Json config;                     // keys of config.json
  Json generation_config;          // keys of generation_config.json; null where absent
  Weights weights;
  std::optional<TokenizerData> tokenizer;    // absent: the model can be run on token ids only
  std::optional<std::string> chat_template;  // Jinja source
  std::string bos_token, eos_token;          // texts, for templates; empty where absent
};

// `path`: a GGUF file (any file of a split set), a .safetensors file, or a directory with
// config.json and model.safetensors or model.safetensors.index.json.
Result<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace espalier::formats
