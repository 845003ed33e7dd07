#include "espalier/text/added_tokens.h"

#include <algorithm>

#include "espalier/base/utf8.h"
#include "espalier/text/unicode.h"

namespace espalier::text {
namespace {

// Whether word boundaries lie on both sides of a match.
bool is_single_word(std::string_view text, Span match) {
  const bool word_before =
      match.begin > 0 && is_word(character_before(text, match.begin).code_point);
  const bool word_after =
      match.end < text.size() && is_word(character_at(text, match.end).code_point);
  return !word_before && !word_after;
}

size_t without_space_before(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const Character c = character_before(text, begin);
    if (!is_white_space(c.code_point)) break;
    begin -= c.size;
  }
  return std::max(begin, limit);
}

size_t without_space_after(std::string_view text, size_t end) {
  while (end < text.size()) {
    const Character c = character_at(text, end);
    if (!is_white_space(c.code_point)) break;
    end += c.size;
  }
  return end;
}

}  // namespace

bool is_control_token(const AddedToken& token) {
  if (token.special) return true;
  const std::string_view text = token.content;
  if (text.size() < 3) return false;
  const bool is_tag =
      (text.front() == '<' && text.back() == '>') || (text.front() == '[' && text.back() == ']');
  if (!is_tag) return false;
  for (size_t i = 0; i < text.size();) {
    const Character c = character_at(text, i);
    if (is_white_space(c.code_point)) return false;
    i += c.size;
  }
  return true;
}

const Span* UserText::last_before(size_t end) const {
  const auto after =
      std::lower_bound(spans_.begin(), spans_.end(), end,
                       [](const Span& span, size_t value) { return span.begin < value; });
  return after == spans_.begin() ? nullptr : &*(after - 1);
}

bool UserText::overlaps(Span span) const {
  const Span* candidate = last_before(span.end);
  return candidate != nullptr && candidate->end > span.begin;
}

bool UserText::contains(Span span) const {
  const Span* candidate = last_before(span.begin + 1);
  return candidate != nullptr && candidate->end >= span.end;
}

void AddedTokens::Trie::add(std::string_view text, TokenId id) {
  if (text.empty()) return;
  first_bytes_[static_cast<unsigned char>(text[0])] = true;
  uint32_t node = 0;
  for (const char c : text) {
    const uint64_t key = static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(c);
    const auto [child, is_new] = children_.emplace(key, static_cast<uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(-1);
    node = child->second;
  }
  ids_[node] = id;
}

void AddedTokens::Trie::find(std::string_view text, size_t begin, std::vector<Hit>& hits) const {
  hits.clear();
  uint32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    const auto child =
        children_.find(static_cast<uint64_t>(node) << 8 | static_cast<unsigned char>(text[i]));
    if (child == children_.end()) return;
    node = child->second;
    if (ids_[node] >= 0) hits.push_back({i + 1, ids_[node]});
  }
}

Result<AddedTokens> AddedTokens::make(const TokenizerData& data, const Normalizer& normalizer) {
  AddedTokens added;
  for (const AddedToken& token : data.added_tokens) {
    added.tokens_.insert_or_assign(token.id, token);
    if (token.special) added.special_texts_[token.content] = true;
    added.last_id_ = std::max(added.last_id_, token.id);
  }
  uint64_t content_bytes = 0;
  for (const auto& [id, token] : added.tokens_) content_bytes += token.content.size();
  RewriteBudget budget(content_bytes);
  // SentencePiece looks for its user-defined symbols in normalised text as they are.
  const bool normalizes_tokens = data.model != TokenizerData::Model::kSentencePieceBpe;
  for (const auto& [id, token] : added.tokens_) {
    added.ids_[token.content] = id;
    SourcedText form{.text = token.content, .sources = {}, .budget = &budget};
    if (token.normalized) {
      if (normalizes_tokens) RETURN_IF_ERROR(normalizer.normalize(form));
      added.normalized_.add(form.text, id);
      added.has_normalized_control_ |= is_control_token(token);
    } else {
      added.raw_.add(form.text, id);
    }
    added.decoder_forms_[id] = std::move(form.text);
  }
  return added;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::optional<TokenId> AddedTokens::id_of(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

bool AddedTokens::is_special_text(std::string_view content) const {
  return special_texts_.contains(std::string(content));
}

template <typename SourceOf>
std::vector<TextPart> AddedTokens::split(std::string_view text, const Trie& trie,
                                         const UserText& user, SourceOf source_of) const {
  std::vector<TextPart> parts;
  std::vector<Trie::Hit> hits;
  size_t covered = 0;
  for (size_t i = trie.empty() ? text.size() : 0; i < text.size();) {
    if (trie.begins(text[i])) {
      trie.find(text, i, hits);
    } else {
      hits.clear();
    }
    // The longest match counts. One that lies partly in user text is passed over for a shorter one,
    // so that it cannot hide a control token of the template.
    const auto guarded = [&](size_t end, TokenId id) {
      return !user.empty() && is_control_token(tokens_.at(id)) &&
             user.overlaps(source_of(Span{i, end}));
    };
    while (!hits.empty() && guarded(hits.back().end, hits.back().id) &&
           !user.contains(source_of(Span{i, hits.back().end}))) {
      hits.pop_back();
    }
    if (hits.empty()) {
      ++i;
      continue;
    }
    Span match{i, hits.back().end};
    const AddedToken& token = tokens_.at(hits.back().id);
    const bool is_users = guarded(match.end, token.id);
    i = match.end;
    if (is_users) continue;
    if (token.single_word && !is_single_word(text, match)) continue;
    if (token.lstrip) match.begin = without_space_before(text, match.begin, covered);
    if (token.rstrip) match.end = without_space_after(text, match.end);
    match.end = std::max(match.begin, match.end);
    if (covered < match.begin) parts.push_back({{covered, match.begin}, std::nullopt});
    if (match.begin < match.end) parts.push_back({match, token.id});
    covered = match.end;
  }
  if (covered < text.size()) parts.push_back({{covered, text.size()}, std::nullopt});
  return parts;
}

std::vector<TextPart> AddedTokens::split_raw(std::string_view text, const UserText& user) const {
  return split(text, raw_, user, [](Span span) { return span; });
}

std::vector<TextPart> AddedTokens::split_normalized(const SourcedText& text,
                                                    const UserText& user) const {
  return split(text.text, normalized_, user, [&](Span span) {
    return Span{text.sources[span.begin], size_t{text.sources[span.end - 1]} + 1};
  });
}

}  // namespace espalier::text
