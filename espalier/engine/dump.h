// dump_weights: the weights that an engine really computes with, as fp32 under their checkpoint
// names, in one safetensors file: an outside implementation can then be compared on exactly them.
#pragma once

#include <string>

#include "espalier/base/result.h"
#include "espalier/engine/engine.h"

namespace espalier::engine {

// Every tensor of Engine::tensors(), [its own shape] F32. Errors: a tensor's name that is not
// UTF-8, and a file that cannot be written; an older file at `path` is then unchanged.
Status dump_weights(const Engine& engine, const std::string& path);

}  // namespace espalier::engine
