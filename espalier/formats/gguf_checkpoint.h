// A GGUF file or split set as a Checkpoint: tensors, configuration and tokenizer translated to
// Hugging Face's vocabulary.
#pragma once

#include <string>

#include "espalier/formats/checkpoint.h"

namespace espalier::formats {

Result<Checkpoint> open_gguf_checkpoint(const std::string& path);

}  // namespace espalier::formats
