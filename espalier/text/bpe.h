// Bpe: byte-pair encoding of one piece by ranked merges, as the `tokenizers` library's BPE model
// does it, with a heap instead of rescanning: n log n in the length of the piece. Refers to the
// TokenizerData it was made from, which must outlive it. Immutable; encode() may be called from any
// thread, with a scratch each.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::text {

using Vocabulary =
    std::unordered_map<std::string_view, TokenId>;  // views into TokenizerData::tokens
Vocabulary index_of(const std::vector<std::string>& tokens);

// One part of a piece: a token so far, in a list of its neighbours.
struct Symbol {
  TokenId id = 0;
  int32_t previous = -1, next = -1;
  bool merged_away = false;
};

struct BpeMerge {
  uint32_t rank = 0;
  TokenId id = 0;
};

struct BpeCandidate {
  BpeMerge merge;
  int32_t left = 0;  // symbol
};

struct BpeScratch {
  std::vector<Symbol> symbols;
  std::vector<BpeCandidate> heap;
};

class Bpe {
 public:
  static Result<Bpe> make(const TokenizerData& data);

  // Appends the tokens of a piece (valid UTF-8, not empty). Tokens that are true in `blocked` are
  // treated as if the vocabulary did not have them; null: none.
  void encode(std::string_view piece, const std::vector<bool>* blocked, BpeScratch& scratch,
              std::vector<TokenId>& ids) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  explicit Bpe(const TokenizerData& data) : data_(&data) {}
  Status read_merges();
  TokenId find(std::string_view token, const std::vector<bool>* blocked) const;  // -1: none
  void split(std::string_view piece, const std::vector<bool>* blocked, BpeScratch& scratch) const;
  bool append_bytes(std::string_view text, std::vector<Symbol>& symbols) const;
  void consider(int32_t left, const std::vector<bool>* blocked, BpeScratch& scratch) const;

  const TokenizerData* data_;
  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, BpeMerge> merges_;  // by (left id, right id)
  std::array<TokenId, 256> byte_tokens_{};         // <0x00> to <0xFF>; -1 where absent
};

// <0xNN>, with upper-case digits.
std::string byte_token(unsigned char byte);

}  // namespace espalier::text
