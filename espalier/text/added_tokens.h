// AddedTokens: the tokens that are looked for in the text before the model sees it, with the rules
// of the `tokenizers` library: the leftmost match wins, of those the longest; lstrip and rstrip
// swallow white space; single_word tokens need word boundaries; `normalized` tokens match in
// normalised text.
//
// Text of a user never becomes a control token (docs/architecture.md, "Per request"). An added
// token is control if it is `special`, or if it has the form of a tag: '<' or '[' first, '>' or ']'
// last, no white space. The second half is for the tool-call and thinking tags that checkpoints
// leave unflagged so that they show in the output ("<think>", "<|tool_call_start|>"); it also
// spells out tags like "<table>" in user text, which is the safe side to err on. Immutable;
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"
#include "espalier/text/normalizer.h"
#include "espalier/text/sourced_text.h"

namespace espalier::text {

bool is_control_token(const AddedToken& token);

// Which parts of the input come from a user, as byte ranges in ascending order.
class UserText {
 public:
  explicit UserText(std::span<const Span> spans) : spans_(spans) {}
  bool empty() const { return spans_.empty(); }
  bool overlaps(Span span) const;
  bool contains(Span span) const;

 private:
  const Span* last_before(size_t end) const;  // the last range that begins before `end`
  std::span<const Span> spans_;
};

// A part of a text: an added token, or what lies between two.
struct TextPart {
  Span span;
  std::optional<TokenId> token;
};

class AddedTokens {
 public:
  static Result<AddedTokens> make(const TokenizerData& data, const Normalizer& normalizer);

  // Parts of the input as it came in.
  std::vector<TextPart> split_raw(std::string_view text, const UserText& user) const;
  // Parts of a normalised text, which must be tracked if `user` is not empty.
  std::vector<TextPart> split_normalized(const SourcedText& text, const UserText& user) const;

  const AddedToken* find(TokenId id) const;
  std::optional<TokenId> id_of(std::string_view content) const;
  // What the decoder gets for an added token: its normalised form where it has one.
  const std::string& decoder_form(TokenId id) const { return decoder_forms_.at(id); }
  bool is_special_text(std::string_view content) const;
  // Whether a control token is matched in normalised text.
  bool has_normalized_control() const { return has_normalized_control_; }
  TokenId last_id() const { return last_id_; }  // -1 where there is none

 private:
  // A prefix tree over bytes.
  class Trie {
   public:
    void add(std::string_view text, TokenId id);
    bool begins(char c) const { return first_bytes_[static_cast<unsigned char>(c)]; }
    bool empty() const { return ids_.size() == 1; }
    struct Hit {
      size_t end;
      TokenId id;
    };
    // All entries that are a prefix of text[begin..], shortest first; `hits` is overwritten.
    void find(std::string_view text, size_t begin, std::vector<Hit>& hits) const;

   private:
    std::vector<bool> first_bytes_ = std::vector<bool>(256, false);
    std::unordered_map<uint64_t, uint32_t> children_;  // by (node, byte)
    std::vector<TokenId> ids_ = {-1};                  // by node; -1: no entry ends here
  };

  template <typename SourceOf>
  std::vector<TextPart> split(std::string_view text, const Trie& trie, const UserText& user,
                              SourceOf source_of) const;

  std::unordered_map<TokenId, AddedToken> tokens_;
  std::unordered_map<std::string, TokenId> ids_;
  std::unordered_map<TokenId, std::string> decoder_forms_;
  std::unordered_map<std::string, bool> special_texts_;
  Trie raw_, normalized_;
  bool has_normalized_control_ = false;
  TokenId last_id_ = -1;
};

}  // namespace espalier::text
