// What becomes of the matches when a text is split: the five behaviours of the `tokenizers`
// library.
#pragma once

#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/text/regex.h"

namespace espalier::text {

// On "a--b" split at "-": Removed a b; Isolated a - - b; MergedWithPrevious a- - b; MergedWithNext
// a - -b; Contiguous a -- b.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

Result<SplitBehavior> split_behavior_from_name(const std::string& name);  // "MergedWithNext"

// The parts that a text is split into; some may be empty. `parts` is overwritten.
void apply_behavior(const std::vector<Match>& matches, SplitBehavior behavior,
                    std::vector<Span>& parts);

}  // namespace espalier::text
