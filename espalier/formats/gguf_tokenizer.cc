#include "espalier/formats/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "espalier/formats/gguf_pretokenizer.h"

namespace espalier::formats {
namespace {

// Values of tokenizer.ggml.token_type that matter here.
enum GgufTokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kByte = 6
};

Error unusable(const std::string& what, const std::string& expected, const std::string& actual) {
  return Error{.what = "GGUF tokenizer: " + what,
               .expected = expected,
               .actual = actual,
               .fix = "Convert the model again."};
}

Result<std::optional<TokenId>> token_id(const GgufMetadata& metadata, const std::string& key,
                                        size_t vocab_size) {
  ASSIGN_OR_RETURN(const int64_t id, metadata.integer_or(key, -1));
  if (id == -1) return std::optional<TokenId>();
  if (id < 0 || static_cast<uint64_t>(id) >= vocab_size) {
    return unusable("'" + key + "' is not in the vocabulary", fmt::format("below {}", vocab_size),
                    fmt::format("{}", id));
  }
  return std::optional(static_cast<TokenId>(id));
}

Result<std::vector<int64_t>> token_types(const GgufMetadata& metadata, size_t vocab_size) {
  if (!metadata.contains("tokenizer.ggml.token_type")) {
    return std::vector<int64_t>(vocab_size, kNormal);
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> types, metadata.integers("tokenizer.ggml.token_type"));
  if (types.size() != vocab_size) {
    return unusable("token_type has not one entry for each token", fmt::format("{}", vocab_size),
                    fmt::format("{}", types.size()));
  }
  return types;
}

// Control and user-defined tokens are looked for in the text, control ones raw. What ends a text is
// control whatever its type says: some converters forgot.
void add_tokens(std::vector<int64_t> types, TokenizerData& data) {
  for (const auto& id : {data.bos_id, data.eos_id}) {
    if (id) types[static_cast<size_t>(*id)] = kControl;
  }
  for (size_t id = 0; id < types.size(); ++id) {
    const bool is_control = types[id] == kControl || types[id] == kUnknown;
    if ((!is_control && types[id] != kUserDefined) || data.tokens[id].empty()) continue;
    data.added_tokens.push_back(
        {.id = static_cast<TokenId>(id),
         .content = data.tokens[id],
         .normalized = !is_control && data.model == TokenizerData::Model::kSentencePieceBpe,
         .special = is_control});
  }
}

Status read_byte_level(const GgufMetadata& metadata, TokenizerData& data) {
  ASSIGN_OR_RETURN(const std::string pre, metadata.string_or("tokenizer.ggml.pre", "default"));
  ASSIGN_OR_RETURN(GgufPretokenizer pipeline, gguf_pretokenizer(pre));
  data.normalizer = std::move(pipeline.normalizer);
  data.pre_tokenizer = std::move(pipeline.pre_tokenizer);
  data.decoder = {{"type", "ByteLevel"}};
  data.ignore_merges = pipeline.ignore_merges;
  data.add_bos = pipeline.add_bos;
  data.unknown_id.reset();  // bytes cover everything
  ASSIGN_OR_RETURN(const auto merges, metadata.strings("tokenizer.ggml.merges"));
  data.merges.reserve(merges.size());
  for (const std::string_view merge : merges) {
    const size_t blank = merge.find(' ', 1);  // a merge may begin with one
    if (blank == std::string_view::npos) {
      return unusable("a merge is no pair", "two tokens with a blank between", std::string(merge));
    }
    data.merges.emplace_back(merge.substr(0, blank), merge.substr(blank + 1));
  }
  return Ok{};
}

// The SentencePiece rules in the form that the Llama tokenizers' tokenizer.json has.
Status read_sentence_piece(const GgufMetadata& metadata, const std::vector<int64_t>& types,
                           TokenizerData& data) {
  data.model = TokenizerData::Model::kSentencePieceBpe;
  data.add_bos = true;
  data.fuse_unknown = true;
  data.byte_fallback = std::find(types.begin(), types.end(), kByte) != types.end();
  ASSIGN_OR_RETURN(data.scores, metadata.floats("tokenizer.ggml.scores"));
  ASSIGN_OR_RETURN(data.add_space_prefix,
                   metadata.boolean_or("tokenizer.ggml.add_space_prefix", true));
  ASSIGN_OR_RETURN(const bool removes_blanks,
                   metadata.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false));
  const auto replace = [](const Json& pattern, const char* content) {
    return Json{{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
  };
  const Json blank{{"String", " "}};
  const Json meta{{"String", "▁"}};
  Json normalizers = Json::array();
  if (removes_blanks) {
    normalizers.push_back(replace({{"Regex", R"(\A +|[ ▁]+\z)"}}, ""));
    normalizers.push_back(replace({{"Regex", " {2,}"}}, " "));
  }
  if (data.add_space_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  normalizers.push_back(replace(blank, "▁"));
  Json decoders = {replace(meta, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  if (data.add_space_prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  data.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  data.decoder = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  return Ok{};
}

}  // namespace

Result<TokenizerData> read_gguf_tokenizer(const GgufMetadata& metadata) {
  TokenizerData data;
  ASSIGN_OR_RETURN(const auto tokens, metadata.strings("tokenizer.ggml.tokens"));
  data.tokens.reserve(tokens.size());
  for (const std::string_view token : tokens) data.tokens.emplace_back(token);
  ASSIGN_OR_RETURN(const std::vector<int64_t> types, token_types(metadata, tokens.size()));
  const auto id = [&](const char* name) {
    return token_id(metadata, std::string("tokenizer.ggml.") + name, tokens.size());
  };
  ASSIGN_OR_RETURN(data.bos_id, id("bos_token_id"));
  ASSIGN_OR_RETURN(data.eos_id, id("eos_token_id"));
  ASSIGN_OR_RETURN(data.pad_id, id("padding_token_id"));
  ASSIGN_OR_RETURN(data.unknown_id, id("unknown_token_id"));

  ASSIGN_OR_RETURN(const std::string model, metadata.string("tokenizer.ggml.model"));
  if (model == "gpt2") {
    RETURN_IF_ERROR(read_byte_level(metadata, data));
  } else if (model == "llama") {
    RETURN_IF_ERROR(read_sentence_piece(metadata, types, data));
  } else {
    return unusable("this model of tokenizer is not supported", "gpt2 or llama", model);
  }
  ASSIGN_OR_RETURN(data.add_bos, metadata.boolean_or("tokenizer.ggml.add_bos_token", data.add_bos));
  ASSIGN_OR_RETURN(data.add_eos, metadata.boolean_or("tokenizer.ggml.add_eos_token", false));
  add_tokens(types, data);
  return data;
}

}  // namespace espalier::formats
