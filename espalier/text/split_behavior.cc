#include "espalier/text/split_behavior.h"

#include <algorithm>

#include "espalier/text/pipeline_json.h"

namespace espalier::text {
namespace {

struct NamedBehavior {
  std::string_view name;
  SplitBehavior behavior;
};
constexpr NamedBehavior kBehaviors[] = {
    {"Removed", SplitBehavior::kRemoved},
    {"Isolated", SplitBehavior::kIsolated},
    {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
    {"MergedWithNext", SplitBehavior::kMergedWithNext},
    {"Contiguous", SplitBehavior::kContiguous},
};

}  // namespace

Result<SplitBehavior> split_behavior_from_name(const std::string& name) {
  std::string known;
  for (const NamedBehavior& row : kBehaviors) {
    if (row.name == name) return row.behavior;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return unknown_part("split behaviour", name, known);
}

void apply_behavior(const std::vector<Match>& matches, SplitBehavior behavior,
                    std::vector<Span>& parts) {
  parts.clear();
  if (behavior == SplitBehavior::kRemoved || behavior == SplitBehavior::kIsolated) {
    for (const Match& match : matches) {
      if (behavior == SplitBehavior::kIsolated || !match.is_match) parts.push_back(match.span);
    }
    return;
  }
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  bool last_was_match = false;
  for (size_t i = 0; i < matches.size(); ++i) {
    const Match& match = matches[backwards ? matches.size() - 1 - i : i];
    const bool joins = behavior == SplitBehavior::kContiguous ? match.is_match == last_was_match
                                                              : match.is_match && !last_was_match;
    if (!joins || parts.empty()) {
      parts.push_back(match.span);
    } else if (backwards) {
      parts.back().begin = match.span.begin;
    } else {
      parts.back().end = match.span.end;
    }
    last_was_match = match.is_match;
  }
  if (backwards) std::reverse(parts.begin(), parts.end());
}

}  // namespace espalier::text
