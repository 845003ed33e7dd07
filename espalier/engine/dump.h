// dump_weights: the weights that an engine really computes with, as fp32 under the names and in the
// order of rows of Hugging Face, in one safetensors file: transformers can then be compared on
// exactly them. The header says so: "row_order": "huggingface".
#pragma once

#include <atomic>
#include <string>

#include "espalier/base/result.h"
#include "espalier/engine/engine.h"

namespace espalier::engine {

// Every tensor of Engine::tensors(), [its own shape] F32. Errors: a tensor's name that is not
// UTF-8, a file that cannot be written, and `stopped`, where it is given and becomes true (by a
// signal, say); an older file at `path` is then unchanged.
Status dump_weights(const Engine& engine, const std::string& path,
                    const std::atomic<bool>* stopped = nullptr);

}  // namespace espalier::engine
