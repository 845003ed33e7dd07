#include "espalier/text/regex.h"

#include <gtest/gtest.h>

#include "espalier/text/regex_dialect.h"

namespace espalier::text {
namespace {

// The text with its matches in brackets.
std::string marked(const std::string& pattern, const std::string& text) {
  const auto regex = Regex::compile(pattern);
  if (!regex.ok()) return regex.error().message();
  std::vector<Match> matches;
  const Status status = regex->find_all(text, matches);
  if (!status.ok()) return status.error().message();
  std::string out;
  for (const Match& match : matches) {
    const std::string part = text.substr(match.span.begin, match.span.end - match.span.begin);
    out += match.is_match ? "[" + part + "]" : part;
  }
  return out;
}

// Expected values are what the tokenizers library (Oniguruma) does with the pattern.
TEST(Regex, SpeaksOnigurumasDialect) {
  const std::string text = "ab\ncd\nEF  gh";
  EXPECT_EQ(marked("^.", text), "[a]b\n[c]d\n[E]F  gh");
  EXPECT_EQ(marked(".$", text), "a[b]\nc[d]\nEF  g[h]");
  EXPECT_EQ(marked("(?m)b.", text), "a[b\n]cd\nEF  gh");
  EXPECT_EQ(marked("\\h", text), "[a][b]\n[c][d]\n[E][F]  gh");
  EXPECT_EQ(marked("[a-c&&b-z]", text), "a[b]\n[c]d\nEF  gh");
  EXPECT_EQ(marked("[a[cd]]", text), "[a]b\n[c][d]\nEF  gh");
  EXPECT_EQ(marked("[\\p{L}&&[^\\p{Ll}]]+", text), "ab\ncd\n[EF]  gh");
  EXPECT_EQ(marked("\\p{^L}", text), "ab[\n]cd[\n]EF[ ][ ]gh");
  EXPECT_EQ(marked("[^\\S\\n]+", text), "ab\ncd\nEF[  ]gh");
  EXPECT_EQ(marked("a{1,2}+", "aaaaab"), "[aaaaa]b");  // repeats the interval, is not possessive
  EXPECT_EQ(marked("a(?i)b|C", "abc aB ac"), "[ab]c [aB] [ac]");  // options run over alternatives
  EXPECT_EQ(marked("[]a]", "a]b"), "[a][]]b");
  EXPECT_EQ(marked("x*", "axb"), "[]a[x]b[]");
  EXPECT_EQ(marked("\\pL", "apL"), "a[pL]");
  EXPECT_EQ(marked("\\s", "a\u0085\u00a0\u180eb"), "a[\u0085][\u00a0]\u180eb");
  EXPECT_EQ(marked("\\w+", "aé\u0301_²-ⓐ"), "[aé\u0301_²]-[ⓐ]");
}

TEST(Regex, KnowsCharactersThatTheLibraryKnowsWhateverUnicodePcre2Has) {
  EXPECT_EQ(marked("\\p{L}", "\U000313AA"), "[\U000313AA]");  // ideograph of Unicode 15
  EXPECT_EQ(marked("\\p{Han}", "\U000313AA"), "[\U000313AA]");
  EXPECT_EQ(marked("\\p{Lu}", "\U00010D50"), "[\U00010D50]");  // capital letter of Unicode 16
  EXPECT_EQ(marked("\U000313AA", "a\U000313AA"), "a[\U000313AA]");
}

TEST(Regex, RefusesWhatHasNoTranslation) {
  for (const char* pattern :
       {"(*FAIL)", "(?P<n>a)",    "(?R)",     "(?|a|b)", "(a)\\1",     "\\K", "(?C1)",
        "\\g<1>",  "(",           ")",        "[a",      "a\\",        "*",   "\\p{",
        "\\xff",   "\\x{110000}", "a{70000}", "[a-[b]]", "[[:nope:]]", "(?<n"}) {
    const auto regex = Regex::compile(pattern);
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_FALSE(regex.error().fix.empty());
  }
}

TEST(Regex, GivesUpOnHostilePatternsInsteadOfHanging) {
  const auto regex = Regex::compile("(a+)+$");
  ASSERT_TRUE(regex.ok());
  std::vector<Match> matches;
  const Status status = regex->find_all(std::string(64, 'a') + "b", matches);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("gave up"), std::string::npos);
}

TEST(Regex, SurvivesDeepNestingAndLongTexts) {
  const std::string deep = std::string(100000, '(') + "a" + std::string(100000, ')');
  EXPECT_FALSE(Regex::compile(deep).ok());
  EXPECT_FALSE(Regex::compile(std::string(10000, '[')).ok());
  EXPECT_FALSE(Regex::compile(std::string(2 << 20, 'a')).ok());
  const auto regex = Regex::compile("(?:\\p{L}|\\p{N})+");  // a group: every repeat costs stack
  ASSERT_TRUE(regex.ok());
  std::vector<Match> matches;
  const std::string text(4 << 20, 'x');
  if (const Status status = regex->find_all(text, matches); status.ok()) {
    EXPECT_EQ(matches.size(), 1u);
  }
}

TEST(Regex, TakesLiteralsAsTheyAre) {
  const auto regex = Regex::literal("a.b");
  ASSERT_TRUE(regex.ok());
  std::vector<Match> matches;
  ASSERT_TRUE(regex->find_all("axb a.b", matches).ok());
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[1].span.begin, 4u);
}

}  // namespace
}  // namespace espalier::text
