#include "espalier/text/sentencepiece_bpe.h"

#include <algorithm>

#include "espalier/base/utf8.h"

namespace espalier::text {
namespace {

struct Part {
  std::string_view text;  // empty once merged into the part on its left
  int32_t previous = -1, next = -1;
};

struct Candidate {
  float score = 0;
  int32_t left = 0, right = 0;
  size_t size = 0;  // bytes of both: they have changed since, if that no longer fits
};

// The heap's order: the highest score on top, and of equals the one furthest left.
bool after(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score < b.score : a.left > b.left;
}

}  // namespace

Result<SentencePieceBpe> SentencePieceBpe::make(const TokenizerData& data) {
  if (data.scores.size() != data.tokens.size()) {
    return Error{.what = "the SentencePiece vocabulary has not one score for each piece",
                 .expected = fmt::format("{} scores", data.tokens.size()),
                 .actual = fmt::format("{}", data.scores.size()),
                 .fix = "Convert the model again."};
  }
  SentencePieceBpe model(data);
  model.vocabulary_ = index_of(data.tokens);
  model.pieces_ = model.vocabulary_;
  for (const AddedToken& token : data.added_tokens) model.pieces_.erase(token.content);
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = byte_token(static_cast<unsigned char>(byte));
    const auto found = model.vocabulary_.find(name);
    model.byte_tokens_[static_cast<size_t>(byte)] =
        found == model.vocabulary_.end() ? -1 : found->second;
    model.pieces_.erase(name);
  }
  for (const auto& [piece, id] : model.pieces_) {
    model.longest_piece_ = std::max(model.longest_piece_, piece.size());
  }
  return model;
}

void SentencePieceBpe::append_uncovered(std::string_view text, std::vector<TokenId>& ids) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (data_->byte_fallback &&
      std::all_of(text.begin(), text.end(), [&](char c) { return token_of(c) >= 0; })) {
    for (const char c : text) ids.push_back(token_of(c));
  } else if (data_->unknown_id) {
    const bool fuses = data_->fuse_unknown && !ids.empty() && ids.back() == *data_->unknown_id;
    if (!fuses) ids.push_back(*data_->unknown_id);
  }
}

void SentencePieceBpe::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::vector<Part> parts;
  for (size_t i = 0; i < text.size();) {
    const size_t size = character_at(text, i).size;
    const auto index = static_cast<int32_t>(parts.size());
    parts.push_back({text.substr(i, size), index - 1, i + size < text.size() ? index + 1 : -1});
    i += size;
  }
  std::vector<Candidate> heap;
  const auto consider = [&](int32_t left) {
    if (left < 0 || parts[static_cast<size_t>(left)].next < 0) return;
    const Part& first = parts[static_cast<size_t>(left)];
    const size_t size = first.text.size() + parts[static_cast<size_t>(first.next)].text.size();
    if (size > longest_piece_) return;
    const auto found = pieces_.find(std::string_view(first.text.data(), size));
    if (found == pieces_.end()) return;
    heap.push_back({data_->scores[static_cast<size_t>(found->second)], left, first.next, size});
    std::push_heap(heap.begin(), heap.end(), after);
  };
  for (size_t i = 0; i < parts.size(); ++i) consider(static_cast<int32_t>(i));
  while (!heap.empty()) {
    const Candidate top = heap.front();
    std::pop_heap(heap.begin(), heap.end(), after);
    heap.pop_back();
    Part& left = parts[static_cast<size_t>(top.left)];
    Part& right = parts[static_cast<size_t>(top.right)];
    const bool stale =
        left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != top.size;
    if (stale) continue;
    left.text = std::string_view(left.text.data(), top.size);
    left.next = right.next;
    right.text = {};
    if (left.next >= 0) parts[static_cast<size_t>(left.next)].previous = top.left;
    consider(left.previous);
    consider(top.left);
  }
  for (int32_t i = parts.empty() ? -1 : 0; i >= 0; i = parts[static_cast<size_t>(i)].next) {
    const std::string_view piece = parts[static_cast<size_t>(i)].text;
    const auto found = pieces_.find(piece);
    if (found != pieces_.end()) {
      ids.push_back(found->second);
    } else {
      append_uncovered(piece, ids);
    }
  }
}

}  // namespace espalier::text
