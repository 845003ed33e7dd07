// A Hugging Face model directory as a Checkpoint, also as mlx-lm writes it: config.json and safetensors, and where they are
// there generation_config.json, tokenizer.json, tokenizer_config.json, special_tokens_map.json and
// a chat template.
#pragma once

#include <string>

#include "espalier/formats/checkpoint.h"

namespace espalier::formats {

// `weights_path`: a .safetensors file or an index; empty for the one of the directory.
Result<Checkpoint> open_hf_checkpoint(const std::string& directory,
                                      const std::string& weights_path);

}  // namespace espalier::formats
