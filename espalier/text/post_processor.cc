#include "espalier/text/post_processor.h"

#include <algorithm>

#include "espalier/text/pipeline_json.h"

namespace espalier::text {
namespace {

using Slot = PostProcessor::Slot;
using Slots = std::vector<Slot>;  // empty: the part adds nothing

Error bad_template(const std::string& what) {
  return Error{
      .what = "the post-processor has a template that cannot be used: " + what,
      .expected = "pieces {\"Sequence\": {\"id\": \"A\"}} and {\"SpecialToken\": {\"id\": ...}}",
      .actual = "another form",
      .fix = "Correct it in the tokenizer."};
}

Result<TokenId> read_id(const Json& value) {
  if (!value.is_number_integer() || value < 0 || value > INT32_MAX) {
    return bad_template("a token id is not a number");
  }
  return value.get<TokenId>();
}

// One {"SpecialToken": {"id": name}}: the ids that special_tokens has under this name.
Status read_special_token(const Json& part, const Json& piece, Slots& slots) {
  ASSIGN_OR_RETURN(const std::string name, json_string(piece, "id"));
  const Json* tokens = json_find(part, "special_tokens");
  const Json* token = tokens == nullptr ? nullptr : json_find(*tokens, name);
  const Json* ids = token == nullptr ? nullptr : json_find(*token, "ids");
  if (ids == nullptr || !ids->is_array()) {
    return bad_template("special_tokens lacks '" + name + "'");
  }
  for (const Json& value : *ids) {
    ASSIGN_OR_RETURN(const TokenId id, read_id(value));
    slots.push_back(id);
  }
  return Ok{};
}

Result<Slots> read_template(const Json& part) {
  const Json* single = json_find(part, "single");
  if (single == nullptr || !single->is_array()) return bad_template("'single' is no array");
  Slots slots;
  for (const Json& piece : *single) {
    if (const Json* special = json_find(piece, "SpecialToken")) {
      RETURN_IF_ERROR(read_special_token(part, *special, slots));
      continue;
    }
    const Json* sequence = json_find(piece, "Sequence");
    const Json* id = sequence == nullptr ? nullptr : json_find(*sequence, "id");
    if (id == nullptr || *id != "A") return bad_template("a piece is not of the first sequence");
    slots.push_back(std::nullopt);
  }
  return slots;
}

// BertProcessing and RobertaProcessing: "cls" before, "sep" after, each a pair of text and id.
Result<Slots> read_cls_sep(const Json& part) {
  Slots slots;
  for (const char* key : {"cls", "sep"}) {
    const Json* pair = json_find(part, key);
    if (pair == nullptr || !pair->is_array() || pair->size() != 2) {
      return bad_template(std::string("'") + key + "' is no pair of text and id");
    }
    ASSIGN_OR_RETURN(const TokenId id, read_id((*pair)[1]));
    slots.push_back(id);
  }
  slots.insert(slots.begin() + 1, std::nullopt);
  return slots;
}

Result<Slots> read_byte_level(const Json&) { return Slots{}; }  // only changes offsets

constexpr PipelinePart<Slots> kParts[] = {
    {"TemplateProcessing", read_template},
    {"BertProcessing", read_cls_sep},
    {"RobertaProcessing", read_cls_sep},
    {"ByteLevel", read_byte_level},
};

Result<Slots> checked(Slots slots, int64_t vocab_size) {
  for (const Slot& slot : slots) {
    if (slot && *slot >= vocab_size) {
      return bad_template(
          fmt::format("token {} is beyond the vocabulary of {}", *slot, vocab_size));
    }
  }
  return slots;
}

}  // namespace

Result<PostProcessor> PostProcessor::make(const TokenizerData& data, int64_t vocab_size) {
  Slots slots = {std::nullopt};
  if (data.post_processor.is_null()) {
    if (data.add_bos && data.bos_id) slots.insert(slots.begin(), data.bos_id);
    if (data.add_eos && data.eos_id) slots.push_back(data.eos_id);
    ASSIGN_OR_RETURN(Slots framed, checked(std::move(slots), vocab_size));
    return PostProcessor(std::move(framed));
  }
  std::vector<Slots> steps;
  RETURN_IF_ERROR(read_steps(data.post_processor, "post-processor", "processors",
                             std::span<const PipelinePart<Slots>>(kParts), steps));
  std::erase_if(steps, [](const Slots& step) { return step.empty(); });
  if (steps.size() > 1) return bad_template("more than one part adds tokens");
  ASSIGN_OR_RETURN(Slots checked_slots,
                   checked(steps.empty() ? std::move(slots) : std::move(steps[0]), vocab_size));
  return PostProcessor(std::move(checked_slots));
}

std::vector<TokenId> PostProcessor::process(std::vector<TokenId> ids,
                                            bool add_special_tokens) const {
  if (slots_.size() == 1 && !slots_[0]) return ids;
  std::vector<TokenId> out;
  out.reserve(ids.size() + slots_.size());
  for (const Slot& slot : slots_) {
    if (!slot) {
      out.insert(out.end(), ids.begin(), ids.end());
    } else if (add_special_tokens) {
      out.push_back(*slot);
    }
  }
  return out;
}

}  // namespace espalier::text
