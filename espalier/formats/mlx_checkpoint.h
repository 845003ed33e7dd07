// What MLX checkpoints (mlx-lm's `convert -q`) have in another way than those of transformers:
//
// - a quantised module is three tensors, "X.weight" of integers in U32 words, and "X.scales" and
//   "X.biases", a number for each group of a row. They become one tensor "X.weight" of an affine
//   encoding, whose scales lie beside it (base/weights.h). "quantization" in config.json says how
//   many bits and how long groups are, for all modules and for single ones by name;
// - a depthwise convolution is [channels, kernel, 1], not [channels, 1, kernel]: the same bytes.
//
// Nothing is copied. Not for other tools' quantisations: they are refused.
#pragma once

#include <map>
#include <string>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/weights.h"

namespace espalier::formats {

// What config.json says of quantisation, or null: of both keys that mean it, at the top or in
// "text_config". `source` names the model in errors.
Result<Json> quantization_in(const Json& config, const std::string& source);

// Tensors as transformers names and shapes them. `tensors` have the names that they have in the
// file, `quantization` is of quantization_in(). Errors: integers without scales, or of a number of
// bits, groups or mode that is not known; shapes that contradict each other or `quantization`.
Result<std::map<std::string, TensorView>> from_mlx(const Json& quantization,
                                                   std::map<std::string, TensorView> tensors);

// The error of a checkpoint that another tool has quantised.
Error quantised_error(const std::string& source, std::string actual);

}  // namespace espalier::formats
