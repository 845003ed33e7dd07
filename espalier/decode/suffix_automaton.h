// SuffixAutomaton: all substrings of a text that grows token by token, and for its end the longest
// suffixes that occurred before. Each token costs constant time on average. (Blumer et al., "The
// smallest automaton recognizing the subwords of a text", 1985; the online construction.)
//
// After reserve() nothing allocates up to that many tokens. One caller at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::decode {

// The last `length` tokens of the text also stand before position `end`, which is inside it.
struct SuffixMatch {
  int32_t length = 0;
  int32_t end = 0;
};

class SuffixAutomaton {
 public:
  static constexpr int kMatches = 4;

  // Forgets the text, and makes room for `tokens`. Fails where there is no memory.
  Status reserve(int64_t tokens);
  void append(TokenId token);

  std::span<const TokenId> text() const { return text_; }
  // The longest suffix that occurred before, then the next shorter ones that occurred in other places
  // too; at most kMatches. Of several places of the longest the latest is named.
  std::span<const SuffixMatch> matches() const {
    return std::span(matches_).first(static_cast<size_t>(match_count_));
  }

 private:
  // A class of substrings that end in the same places.
  struct State {
    int32_t length = 0;  // of the longest
    int32_t link = -1;   // the class of its longest suffix that ends in more places
    int32_t end = 0;     // a place where they end, late ones preferred
    int32_t edges = -1;  // first of a list
  };
  struct Edge {
    int32_t from, to;
    TokenId token;
    int32_t next;  // edge of the same state
  };

  int32_t find_edge(int32_t state, TokenId token) const;  // -1: none
  void add_edge(int32_t state, TokenId token, int32_t to);
  int32_t add_state(int32_t length, int32_t end);
  int32_t clone(int32_t state, int32_t length);
  size_t slot_of(int32_t state, TokenId token) const;
  void find_matches();

  size_t room_ = 0;  // tokens
  std::vector<TokenId> text_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<int32_t> slots_;  // hash table of edges by (from, token), a power of two; -1: free
  int32_t last_ = 0;            // the class of the whole text
  std::array<SuffixMatch, kMatches> matches_{};
  int match_count_ = 0;
};

}  // namespace espalier::decode
