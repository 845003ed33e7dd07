// How an answer is drawn: flags first, then the model's generation configuration where it samples
// (do_sample), else greedy. Its repetition_penalty counts in either case, as in transformers, which
// applies it to greedy answers too; --greedy leaves all of that configuration out. A truncation
// flag without a temperature means temperature 1; without --seed the seed is random, and reported.
#pragma once

#include "espalier/base/result.h"
#include "espalier/cli/options.h"
#include "espalier/decode/sampling.h"
#include "espalier/formats/checkpoint.h"

namespace espalier::cli {

// Whether the flags are in their ranges, as far as it can be told without a model.
Status check_sampling(const Options& options);

Result<decode::SamplingOptions> choose_sampling(const Options& options,
                                                const formats::Checkpoint& checkpoint);

}  // namespace espalier::cli
