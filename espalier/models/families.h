// The architectures' makers, for the rows of registry.cc; each is defined in the file of its paper.
// Contract: models/model.h, make_model().
#pragma once

#include "espalier/models/model.h"

namespace espalier::models {

Result<Model> make_llama(const Json& config, const Weights& weights);
Result<Model> make_mistral(const Json& config, const Weights& weights);
Result<Model> make_qwen2(const Json& config, const Weights& weights);
Result<Model> make_qwen3(const Json& config, const Weights& weights);
Result<Model> make_lfm2(const Json& config, const Weights& weights);

}  // namespace espalier::models
