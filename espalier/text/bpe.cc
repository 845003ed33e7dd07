#include "espalier/text/bpe.h"

#include <algorithm>

#include "espalier/base/utf8.h"

namespace espalier::text {
namespace {

uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// The heap's order: the lowest rank on top, and of equals the one furthest left.
bool after(const BpeCandidate& a, const BpeCandidate& b) {
  return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank : a.left > b.left;
}

Error bad_merge(const std::string& what, const std::string& token) {
  return Error{.what = "a merge of the tokenizer " + what,
               .expected = "two tokens of the vocabulary whose concatenation is one too",
               .actual = "'" + token + "'",
               .fix = "The tokenizer is damaged: get it again."};
}

}  // namespace

Vocabulary index_of(const std::vector<std::string>& tokens) {
  Vocabulary vocabulary;
  vocabulary.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) vocabulary.insert_or_assign(tokens[id], static_cast<TokenId>(id));
  }
  return vocabulary;
}

std::string byte_token(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

Result<Bpe> Bpe::make(const TokenizerData& data) {
  Bpe bpe(data);
  bpe.vocabulary_ = index_of(data.tokens);
  for (int byte = 0; byte < 256; ++byte) {
    bpe.byte_tokens_[static_cast<size_t>(byte)] =
        bpe.find(byte_token(static_cast<unsigned char>(byte)), nullptr);
  }
  RETURN_IF_ERROR(bpe.read_merges());
  return bpe;
}

Status Bpe::read_merges() {
  merges_.reserve(data_->merges.size());
  const std::string& prefix = data_->continuing_subword_prefix;
  std::string merged;
  for (size_t rank = 0; rank < data_->merges.size(); ++rank) {
    const auto& [left, right] = data_->merges[rank];
    const TokenId left_id = find(left, nullptr);
    const TokenId right_id = find(right, nullptr);
    if (left_id < 0) return bad_merge("names an unknown token", left);
    if (right_id < 0) return bad_merge("names an unknown token", right);
    if (right.size() < prefix.size()) return bad_merge("lacks the subword prefix", right);
    merged = left;
    merged += std::string_view(right).substr(prefix.size());
    const TokenId id = find(merged, nullptr);
    if (id < 0) return bad_merge("makes an unknown token", merged);
    merges_.insert_or_assign(pair_key(left_id, right_id),
                             BpeMerge{static_cast<uint32_t>(rank), id});
  }
  return Ok{};
}

TokenId Bpe::find(std::string_view token, const std::vector<bool>* blocked) const {
  const auto found = vocabulary_.find(token);
  if (found == vocabulary_.end()) return -1;
  const TokenId id = found->second;
  return blocked != nullptr && (*blocked)[static_cast<size_t>(id)] ? -1 : id;
}

// The bytes of a character that the vocabulary lacks; all or nothing.
bool Bpe::append_bytes(std::string_view text, std::vector<Symbol>& symbols) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::any_of(text.begin(), text.end(), [&](char c) { return token_of(c) < 0; })) return false;
  for (const char c : text) symbols.push_back({.id = token_of(c)});
  return true;
}

// The first symbols: characters, byte tokens or the unknown token. An unknown token is held back
// until the next known character, as the library does it, so byte tokens overtake it.
void Bpe::split(std::string_view piece, const std::vector<bool>* blocked,
                BpeScratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  bool unknown_is_held = false;
  const auto flush_unknown = [&] {
    if (unknown_is_held) symbols.push_back({.id = *data_->unknown_id});
    unknown_is_held = false;
  };
  const bool decorates =
      !data_->continuing_subword_prefix.empty() || !data_->end_of_word_suffix.empty();
  std::string decorated;
  for (size_t i = 0; i < piece.size();) {
    std::string_view text = piece.substr(i, character_at(piece, i).size);
    const bool is_first = i == 0;
    i += text.size();
    if (decorates) {
      decorated = is_first ? "" : data_->continuing_subword_prefix;
      decorated += text;
      if (i == piece.size()) decorated += data_->end_of_word_suffix;
      text = decorated;
    }
    const TokenId id = find(text, blocked);
    if (id >= 0) {
      flush_unknown();
      symbols.push_back({.id = id});
    } else if (data_->byte_fallback && append_bytes(text, symbols)) {
      continue;
    } else if (data_->unknown_id) {
      if (!data_->fuse_unknown) flush_unknown();
      unknown_is_held = true;
    }
  }
  flush_unknown();
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
}

// Puts the merge of a symbol with its right neighbour on the heap, if there is one.
void Bpe::consider(int32_t left, const std::vector<bool>* blocked, BpeScratch& scratch) const {
  const Symbol& symbol = scratch.symbols[static_cast<size_t>(left)];
  if (symbol.next < 0) return;
  const auto found =
      merges_.find(pair_key(symbol.id, scratch.symbols[static_cast<size_t>(symbol.next)].id));
  if (found == merges_.end()) return;
  if (blocked != nullptr && (*blocked)[static_cast<size_t>(found->second.id)]) return;
  scratch.heap.push_back({found->second, left});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), after);
}

void Bpe::encode(std::string_view piece, const std::vector<bool>* blocked, BpeScratch& scratch,
                 std::vector<TokenId>& ids) const {
  if (data_->ignore_merges) {
    const TokenId whole = find(piece, blocked);
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  split(piece, blocked, scratch);
  std::vector<Symbol>& symbols = scratch.symbols;
  scratch.heap.clear();
  for (size_t i = 0; i < symbols.size(); ++i) consider(static_cast<int32_t>(i), blocked, scratch);
  while (!scratch.heap.empty()) {
    const BpeCandidate top = scratch.heap.front();
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), after);
    scratch.heap.pop_back();
    Symbol& left = symbols[static_cast<size_t>(top.left)];
    if (left.merged_away || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    const auto current =
        merges_.find(pair_key(left.id, right.id));  // the pair may have changed since
    if (current == merges_.end() || current->second.id != top.merge.id) continue;
    left.id = top.merge.id;
    left.next = right.next;
    right.merged_away = true;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = top.left;
    if (left.previous >= 0) consider(left.previous, blocked, scratch);
    consider(top.left, blocked, scratch);
  }
  for (const Symbol& symbol : symbols) {
    if (!symbol.merged_away) ids.push_back(symbol.id);
  }
}

}  // namespace espalier::text
