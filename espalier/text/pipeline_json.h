// What the readers of pipeline parts (normalizer, pre-tokenizer, post-processor, decoder) share:
// the form of tokenizer.json, {"type": ..., members}, with "Sequence" for several parts. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/text/regex.h"

namespace espalier::text {

// A part is one row: its type, and the function that reads it into a step.
template <typename Step>
struct PipelinePart {
  std::string_view type;
  Result<Step> (*read)(const Json& part);
};

// Steps of one kind, each of which goes through the whole text; real tokenizers have up to ten.
inline constexpr size_t kMaxParts = 64;

Error too_many_parts(const std::string& kind);
Error unknown_part(const std::string& kind, const std::string& type, const std::string& known);

// The steps of a part; "Sequence" parts, whose members are under `members_key`, are laid out flat.
// `kind` names the part in errors ("normalizer").
template <typename Step>
Status read_steps(const Json& part, const std::string& kind, const std::string& members_key,
                  std::span<const PipelinePart<Step>> known, std::vector<Step>& steps) {
  if (part.is_null()) return Ok{};
  auto type = json_string(part, "type");
  if (!type.ok()) return type.error().with_context(kind);
  if (*type == "Sequence") {
    const Json* members = json_find(part, members_key);
    if (members == nullptr || !members->is_array()) {
      return unknown_part(kind, "Sequence without '" + members_key + "'", "an array of parts");
    }
    for (const Json& member : *members) {
      RETURN_IF_ERROR(read_steps(member, kind, members_key, known, steps));
    }
    return Ok{};
  }
  std::string names = "Sequence";
  for (const PipelinePart<Step>& row : known) {
    if (row.type == *type) {
      auto step = row.read(part);
      if (!step.ok()) return step.error().with_context(kind + " '" + *type + "'");
      if (steps.size() == kMaxParts) return too_many_parts(kind);
      steps.push_back(std::move(step).value());
      return Ok{};
    }
    names += ", " + std::string(row.type);
  }
  return unknown_part(kind, *type, names);
}

// {"pattern": {"String": ...}} or {"pattern": {"Regex": ...}}.
Result<Regex> read_pattern(const Json& part);
// A member that holds exactly one character.
Result<std::string> read_character(const Json& part, const std::string& key);

}  // namespace espalier::text
