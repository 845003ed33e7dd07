// Rotary position embedding as configurations describe it, turned into one list of frequencies.
// Static programs have one list for all positions, so the scalings that switch with the length
// (dynamic, longrope) are used up to the length at which they would switch, and the context ends
// there.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/weights.h"

namespace espalier::models {

struct Rope {
  std::vector<double> frequencies;  // radians per position, one per rotated pair
  double scale = 1.0;               // of cosine and sine (YaRN, LongRoPE)
  bool interleaved = false;         // pairs 2i, 2i + 1 instead of i, i + n
  int64_t context_limit = 0;        // positions that these frequencies are right for; 0: no limit
};

// Reads rope_parameters (nested) or rope_theta and rope_scaling (flat): types default, linear,
// dynamic, llama3, yarn, longrope. `default_theta` is the architecture's. Whole heads are rotated,
// as transformers does it whatever partial_rotary_factor says, unless "rope_rotary_dim" (GGUF) has
// fewer channels. A tensor "rope_freqs.weight" (GGUF) divides the frequencies.
Result<Rope> read_rope(const Json& config, const Weights& weights, int64_t head_dim,
                       double default_theta, int64_t context_length);

}  // namespace espalier::models
