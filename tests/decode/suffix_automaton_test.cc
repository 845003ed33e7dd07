#include "espalier/decode/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace espalier::decode {
namespace {

// The definition: the longest suffix that also ends earlier.
int32_t longest_repeated_suffix(std::span<const TokenId> text) {
  const auto size = static_cast<int32_t>(text.size());
  int32_t longest = 0;
  for (int32_t end = 1; end < size; ++end) {
    int32_t length = 0;
    while (length < end && text[static_cast<size_t>(end - 1 - length)] ==
                               text[static_cast<size_t>(size - 1 - length)]) {
      ++length;
    }
    longest = std::max(longest, length);
  }
  return longest;
}

TEST(SuffixAutomaton, FindsTheLongestSuffixThatOccurredBefore) {
  std::mt19937 random(7);
  for (const TokenId alphabet : {1, 2, 3, 8, 300}) {
    for (int round = 0; round < 20; ++round) {
      SuffixAutomaton automaton;
      ASSERT_TRUE(automaton.reserve(150).ok());
      std::vector<TokenId> text;
      for (int i = 0; i < 150; ++i) {
        text.push_back(static_cast<TokenId>(random()) % alphabet);
        automaton.append(text.back());
        const auto matches = automaton.matches();
        ASSERT_EQ(matches.empty() ? 0 : matches[0].length, longest_repeated_suffix(text));
        int32_t longer = INT32_MAX;
        for (const SuffixMatch& match : matches) {
          ASSERT_LT(match.length, longer);
          ASSERT_LE(match.length, match.end);
          ASSERT_LT(match.end, static_cast<int32_t>(text.size()));
          longer = match.length;
          const auto end = text.begin() + match.end;
          ASSERT_TRUE(std::equal(end - match.length, end, text.end() - match.length));
        }
      }
    }
  }
}

TEST(SuffixAutomaton, NamesTheLatestPlaceOfTheLongestSuffix) {
  SuffixAutomaton automaton;
  ASSERT_TRUE(automaton.reserve(20).ok());
  for (const TokenId token : {1, 2, 7, 1, 2, 8, 1, 2}) automaton.append(token);
  ASSERT_FALSE(automaton.matches().empty());
  EXPECT_EQ(automaton.matches()[0].length, 2);
  EXPECT_EQ(automaton.matches()[0].end, 5);
}

TEST(SuffixAutomaton, ForgetsItsTextWhenItIsReservedAnew) {
  SuffixAutomaton automaton;
  ASSERT_TRUE(automaton.reserve(4).ok());
  for (const TokenId token : {1, 1, 1, 1}) automaton.append(token);
  EXPECT_FALSE(automaton.matches().empty());
  ASSERT_TRUE(automaton.reserve(2).ok());
  EXPECT_TRUE(automaton.text().empty());
  EXPECT_TRUE(automaton.matches().empty());
  automaton.append(1);
  EXPECT_TRUE(automaton.matches().empty());
}

}  // namespace
}  // namespace espalier::decode
