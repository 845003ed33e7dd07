#include "espalier/formats/tokenizer_json.h"

#include <fmt/format.h>

#include <unordered_map>

namespace espalier::formats {
namespace {

Error malformed(const std::string& what, const std::string& expected, const Json& actual) {
  return Error{.what = "tokenizer.json: " + what,
               .expected = expected,
               .actual = actual.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
               .fix = "Get the tokenizer again, or use one with a BPE model."};
}

const Json& member_or_null(const Json& object, const std::string& key) {
  static const Json kNull;
  const Json* member = json_find(object, key);
  return member == nullptr ? kNull : *member;
}

// Gives texts their ids as the library does: a text that the vocabulary or an earlier added token
// has keeps its id, others are numbered from the size of the vocabulary on.
class TokenIds {
 public:
  explicit TokenIds(const Json& vocabulary)
      : vocabulary_(vocabulary), next_(static_cast<int64_t>(vocabulary.size())) {}

  std::optional<TokenId> find(const std::string& text) const {
    if (const auto added = added_.find(text); added != added_.end()) return added->second;
    const auto found = vocabulary_.find(text);
    if (found == vocabulary_.end()) return std::nullopt;
    return found->get<TokenId>();
  }
  TokenId add(const std::string& text) {
    if (const std::optional<TokenId> id = find(text)) return added_[text] = *id;
    return added_[text] = static_cast<TokenId>(next_++);
  }
  bool is_added(const std::string& text) const { return added_.contains(text); }

 private:
  const Json& vocabulary_;
  std::unordered_map<std::string, TokenId> added_;
  int64_t next_;
};

Status read_vocabulary(const Json& vocabulary, TokenizerData& data) {
  if (!vocabulary.is_object()) return malformed("'vocab' is missing", "an object", vocabulary);
  // Real vocabularies have few holes; the bound keeps a lying id from claiming memory.
  const uint64_t id_limit = 4 * static_cast<uint64_t>(vocabulary.size()) + 65536;
  for (const auto& [text, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= id_limit) {
      return malformed("the id of token '" + text + "' is out of range",
                       fmt::format("an integer below {}", id_limit), id);
    }
    const auto index = id.get<size_t>();
    if (index >= data.tokens.size()) data.tokens.resize(index + 1);
    data.tokens[index] = text;
  }
  return Ok{};
}

// "a b", or ["a", "b"] where tokens hold blanks.
Status read_merges(const Json& merges, TokenizerData& data) {
  if (!merges.is_array()) return malformed("'merges' is missing", "an array", merges);
  data.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      if (text.starts_with("#version")) continue;
      const size_t blank = text.find(' ');
      if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) {
        return malformed("a merge is no pair", "two tokens with a blank between", merge);
      }
      data.merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      data.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      return malformed("a merge is no pair", "\"a b\" or [\"a\", \"b\"]", merge);
    }
  }
  return Ok{};
}

Status read_model(const Json& model, TokenizerData& data) {
  if (!model.is_object()) return malformed("'model' is missing", "an object", model);
  ASSIGN_OR_RETURN(const std::string type, json_string_or(model, "type", "BPE"));
  if (type != "BPE") return malformed("this model is not supported", "BPE", type);
  ASSIGN_OR_RETURN(const double dropout, json_number_or(model, "dropout", 0));
  if (dropout != 0) return malformed("dropout makes ids random", "no dropout", dropout);
  ASSIGN_OR_RETURN(data.ignore_merges, json_bool_or(model, "ignore_merges", false));
  ASSIGN_OR_RETURN(data.byte_fallback, json_bool_or(model, "byte_fallback", false));
  ASSIGN_OR_RETURN(data.fuse_unknown, json_bool_or(model, "fuse_unk", false));
  ASSIGN_OR_RETURN(data.continuing_subword_prefix,
                   json_string_or(model, "continuing_subword_prefix", ""));
  ASSIGN_OR_RETURN(data.end_of_word_suffix, json_string_or(model, "end_of_word_suffix", ""));
  RETURN_IF_ERROR(read_vocabulary(member_or_null(model, "vocab"), data));
  return read_merges(member_or_null(model, "merges"), data);
}

// Flags as in tokenizer.json and in tokenizer_config.json's added_tokens_decoder.
Result<AddedToken> read_added_token(const Json& json) {
  AddedToken token;
  ASSIGN_OR_RETURN(token.content, json_string(json, "content"));
  ASSIGN_OR_RETURN(token.lstrip, json_bool_or(json, "lstrip", false));
  ASSIGN_OR_RETURN(token.rstrip, json_bool_or(json, "rstrip", false));
  ASSIGN_OR_RETURN(token.single_word, json_bool_or(json, "single_word", false));
  ASSIGN_OR_RETURN(token.special, json_bool_or(json, "special", false));
  ASSIGN_OR_RETURN(token.normalized, json_bool_or(json, "normalized", !token.special));
  return token;
}

void add_token(AddedToken token, TokenIds& ids, TokenizerData& data) {
  if (token.content.empty()) return;
  token.id = ids.add(token.content);
  data.added_tokens.push_back(std::move(token));
}

// A named token of tokenizer_config.json: a text, or an object with its flags; nothing where it is
// absent.
Result<std::optional<AddedToken>> named_token(const Json& config, const std::string& key) {
  const Json* value = json_find(config, key);
  if (value == nullptr) return std::optional<AddedToken>();
  if (value->is_string()) {
    return std::optional(AddedToken{.content = value->get<std::string>(), .special = true});
  }
  auto token = read_added_token(*value);
  if (!token.ok()) return token.error().with_context("tokenizer_config.json: '" + key + "'");
  token->special = true;
  return std::optional(*token);
}

// transformers adds what the configuration lists and tokenizer.json lacks, and makes the named
// tokens special.
Status add_configured_tokens(const Json& config, TokenIds& ids, TokenizerData& data) {
  const Json& listed = member_or_null(config, "added_tokens_decoder");
  std::map<int64_t, AddedToken> by_id;
  for (const auto& [id, json] : listed.items()) {
    if (!listed.is_object() || id.empty() || id.size() > 9 ||
        id.find_first_not_of("0123456789") != std::string::npos) {
      return malformed("'added_tokens_decoder' of tokenizer_config.json has a key that is no id",
                       "an id", id);
    }
    ASSIGN_OR_RETURN(by_id[std::stol(id)], read_added_token(json));
  }
  for (auto& [id, token] : by_id) {
    if (!ids.is_added(token.content)) add_token(std::move(token), ids, data);
  }
  for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    ASSIGN_OR_RETURN(std::optional<AddedToken> token, named_token(config, key));
    if (token && !ids.is_added(token->content)) add_token(*std::move(token), ids, data);
  }
  return Ok{};
}

Result<std::optional<TokenId>> named_id(const Json& config, const std::string& key,
                                        const TokenIds& ids) {
  ASSIGN_OR_RETURN(const std::optional<AddedToken> token, named_token(config, key));
  return token ? ids.find(token->content) : std::nullopt;
}

// An explicit add_bos_token or add_eos_token replaces the post-processor, and the other one counts
// as false.
Status read_bos_and_eos(const Json& config, const TokenIds& ids, TokenizerData& data) {
  ASSIGN_OR_RETURN(data.bos_id, named_id(config, "bos_token", ids));
  ASSIGN_OR_RETURN(data.eos_id, named_id(config, "eos_token", ids));
  ASSIGN_OR_RETURN(data.pad_id, named_id(config, "pad_token", ids));
  if (json_find(config, "add_bos_token") == nullptr &&
      json_find(config, "add_eos_token") == nullptr) {
    return Ok{};
  }
  ASSIGN_OR_RETURN(data.add_bos, json_bool_or(config, "add_bos_token", false));
  ASSIGN_OR_RETURN(data.add_eos, json_bool_or(config, "add_eos_token", false));
  data.post_processor = nullptr;
  return Ok{};
}

}  // namespace

Result<TokenizerData> read_tokenizer_json(const Json& tokenizer_json,
                                          const Json& tokenizer_config) {
  TokenizerData data;
  const Json& model = member_or_null(tokenizer_json, "model");
  RETURN_IF_ERROR(read_model(model, data));
  TokenIds ids(member_or_null(model, "vocab"));
  ASSIGN_OR_RETURN(const std::string unknown, json_string_or(model, "unk_token", ""));
  if (!unknown.empty()) data.unknown_id = ids.find(unknown);

  const Json& added_tokens = member_or_null(tokenizer_json, "added_tokens");
  if (!added_tokens.is_null() && !added_tokens.is_array()) {
    return malformed("'added_tokens' has the wrong type", "an array", added_tokens);
  }
  for (const Json& json : added_tokens) {
    auto token = read_added_token(json);
    if (!token.ok()) return token.error().with_context("tokenizer.json: an added token");
    add_token(std::move(token).value(), ids, data);
  }
  data.normalizer = member_or_null(tokenizer_json, "normalizer");
  data.pre_tokenizer = member_or_null(tokenizer_json, "pre_tokenizer");
  data.post_processor = member_or_null(tokenizer_json, "post_processor");
  data.decoder = member_or_null(tokenizer_json, "decoder");
  RETURN_IF_ERROR(add_configured_tokens(tokenizer_config, ids, data));
  RETURN_IF_ERROR(read_bos_and_eos(tokenizer_config, ids, data));
  return data;
}

}  // namespace espalier::formats
