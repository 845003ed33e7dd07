// GGUF metadata in the words of config.json and generation_config.json. Keys without a counterpart
// are left out; nothing is invented: what the file does not say is absent, and models/ has its
// defaults. Pure functions.
#pragma once

#include <map>
#include <string>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/formats/gguf.h"

namespace espalier::formats {

// Also: "rope_interleaved", and "layer_types" where head_count_kv says layer by layer which have
// attention.
Result<Json> gguf_config(const GgufMetadata& metadata);

// bos_token_id, eos_token_id (a list where several end an answer) and sampling defaults.
Result<Json> gguf_generation_config(const GgufMetadata& metadata);

}  // namespace espalier::formats
