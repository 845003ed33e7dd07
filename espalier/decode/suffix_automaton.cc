#include "espalier/decode/suffix_automaton.h"

#include <bit>
#include <new>

#include "espalier/base/check.h"

namespace espalier::decode {
namespace {

// A text of n tokens has at most 2n states and 3n edges.
constexpr size_t kStatesPerToken = 2;
constexpr size_t kEdgesPerToken = 3;

}  // namespace

Status SuffixAutomaton::reserve(int64_t tokens) try {
  room_ = static_cast<size_t>(tokens);
  text_.clear();
  states_.clear();
  edges_.clear();
  text_.reserve(room_);
  states_.reserve(kStatesPerToken * room_ + 1);
  edges_.reserve(kEdgesPerToken * room_ + 1);
  slots_.assign(std::bit_ceil(2 * kEdgesPerToken * room_ + 2), -1);
  last_ = add_state(0, 0);
  match_count_ = 0;
  return Ok{};
} catch (const std::bad_alloc&) {
  return out_of_memory_error("no memory for the index of the text", {},
                             "Close other programs, or use --speculate off.");
}

size_t SuffixAutomaton::slot_of(int32_t state, TokenId token) const {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32 |
                       static_cast<uint64_t>(static_cast<uint32_t>(token));
  const uint64_t mixed = key * 0x9E3779B97F4A7C15u;  // Fibonacci hashing
  size_t slot = static_cast<size_t>(mixed >> 32) & (slots_.size() - 1);
  while (slots_[slot] >= 0) {
    const Edge& edge = edges_[static_cast<size_t>(slots_[slot])];
    if (edge.from == state && edge.token == token) break;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

int32_t SuffixAutomaton::find_edge(int32_t state, TokenId token) const {
  return slots_[slot_of(state, token)];
}

void SuffixAutomaton::add_edge(int32_t state, TokenId token, int32_t to) {
  slots_[slot_of(state, token)] = static_cast<int32_t>(edges_.size());
  State& from = states_[static_cast<size_t>(state)];
  edges_.push_back({.from = state, .to = to, .token = token, .next = from.edges});
  from.edges = static_cast<int32_t>(edges_.size()) - 1;
}

int32_t SuffixAutomaton::add_state(int32_t length, int32_t end) {
  states_.push_back({.length = length, .link = -1, .end = end, .edges = -1});
  return static_cast<int32_t>(states_.size()) - 1;
}

// A state with the same way on and back, for the substrings of at most `length`.
int32_t SuffixAutomaton::clone(int32_t state, int32_t length) {
  const State original = states_[static_cast<size_t>(state)];
  const int32_t copy = add_state(length, original.end);
  states_[static_cast<size_t>(copy)].link = original.link;
  for (int32_t e = original.edges; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
    const Edge edge = edges_[static_cast<size_t>(e)];
    add_edge(copy, edge.token, edge.to);
  }
  states_[static_cast<size_t>(state)].link = copy;
  return copy;
}

void SuffixAutomaton::append(TokenId token) {
  CHECK_LT(text_.size(), room_);
  text_.push_back(token);
  const auto length = static_cast<int32_t>(text_.size());
  const int32_t current = add_state(length, length);
  int32_t state = last_;
  int32_t edge = find_edge(state, token);
  while (edge < 0) {
    add_edge(state, token, current);
    state = states_[static_cast<size_t>(state)].link;
    if (state < 0) break;
    edge = find_edge(state, token);
  }
  int32_t link = 0;
  if (state >= 0) {
    link = edges_[static_cast<size_t>(edge)].to;
    const int32_t shorter = states_[static_cast<size_t>(state)].length + 1;
    if (shorter != states_[static_cast<size_t>(link)].length) {
      const int32_t original = link;
      link = clone(original, shorter);
      while (edge >= 0 && edges_[static_cast<size_t>(edge)].to == original) {
        edges_[static_cast<size_t>(edge)].to = link;
        state = states_[static_cast<size_t>(state)].link;
        edge = state >= 0 ? find_edge(state, token) : -1;
      }
    }
  }
  states_[static_cast<size_t>(current)].link = link;
  last_ = current;
  find_matches();
}

// Names the places, then lets the same suffixes end here: the next match is a late one. Only the
// longest are brought up to date; a text that repeats one token has as many as tokens.
void SuffixAutomaton::find_matches() {
  match_count_ = 0;
  int32_t state = states_[static_cast<size_t>(last_)].link;
  while (state > 0 && match_count_ < kMatches) {
    State& suffix = states_[static_cast<size_t>(state)];
    matches_[static_cast<size_t>(match_count_++)] = {.length = suffix.length, .end = suffix.end};
    suffix.end = static_cast<int32_t>(text_.size());
    state = suffix.link;
  }
}

}  // namespace espalier::decode
