// TokenizerData: what a file says about its tokenizer, before text/ makes a tokenizer of it.
// Filled by formats (tokenizer.json, GGUF metadata), read by text. Plain data, no behaviour.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier {

using TokenId = int32_t;

// An added token as the Hugging Face `tokenizers` library defines it.
struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool lstrip = false;       // also swallows white space to its left
  bool rstrip = false;       // also swallows white space to its right
  bool single_word = false;  // only matches between non-word characters
  bool normalized = false;   // matched in normalised text, otherwise in the raw text
  bool special = false;  // control token: never produced from user text, hidden by the detokenizer
};

struct TokenizerData {
  enum class Model { kBpe, kSentencePieceBpe };  // merges with ranks; pieces with scores (llama)

  Model model = Model::kBpe;
  std::vector<std::string> tokens;                          // by id; holes are empty strings
  std::vector<float> scores;                                // by id; SentencePiece only
  std::vector<std::pair<std::string, std::string>> merges;  // by rank; BPE only
  std::vector<AddedToken> added_tokens;

  // The pipeline in tokenizer.json form; null where absent. For GGUF, formats/ writes the same form
  // from its table of `tokenizer.ggml.pre` names, so text/ knows one vocabulary.
  nlohmann::json normalizer, pre_tokenizer, post_processor, decoder;

  bool ignore_merges = false;  // a pre-token that is in the vocabulary is taken whole
  bool byte_fallback = false;  // unknown characters become <0xNN> tokens
  bool fuse_unknown = false;
  std::string continuing_subword_prefix, end_of_word_suffix;
  std::optional<TokenId> unknown_id, bos_id, eos_id, pad_id;
  bool add_bos = false;  // by the tokenizer's own rule when special tokens are added
  bool add_eos = false;
  bool add_space_prefix = true;  // SentencePiece only
};

}  // namespace espalier
