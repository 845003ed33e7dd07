#include "espalier/text/stop.h"

#include <gtest/gtest.h>

#include <random>

namespace espalier::text {
namespace {

std::string random_string(std::mt19937& random, size_t limit) {
  std::string text(random() % (limit + 1), ' ');
  for (char& c : text) c = "abc"[random() % 3];
  return text;
}

// The definition: the shortest beginning of the text that ends in a stop, without its longest stop.
std::pair<std::string, bool> naive(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

TEST(StopMatcher, FindsWhatANaiveSearchFindsHoweverTheTextIsCut) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = random_string(random, 5);
    const std::string text = random_string(random, 20);
    const auto [expected, expected_stop] = naive(text, stops);
    StopMatcher matcher(stops);
    std::string emitted;
    bool stopped = false;
    for (size_t begin = 0; begin < text.size();) {
      const size_t size = 1 + random() % 4;
      const StopMatcher::Step step = matcher.push(text.substr(begin, size));
      emitted += step.text;
      stopped |= step.stopped;
      EXPECT_TRUE(expected.starts_with(emitted));
      begin += size;
    }
    emitted += matcher.finish();
    ASSERT_EQ(emitted, expected) << text;
    ASSERT_EQ(stopped, expected_stop) << text;
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopMatcher matcher({"\n\nUser:", "<end>"});
  EXPECT_EQ(matcher.push("Hello").text, "Hello");
  EXPECT_EQ(matcher.push(" wor\n").text, " wor");
  EXPECT_EQ(matcher.push("ld<e").text, "\nld");
  EXPECT_EQ(matcher.push("x").text, "<ex");
  const StopMatcher::Step step = matcher.push(".\n\nUser: more");
  EXPECT_EQ(step.text, ".");
  EXPECT_TRUE(step.stopped);
  EXPECT_EQ(matcher.push("ignored").text, "");
  EXPECT_TRUE(matcher.push("ignored").stopped);
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, PassesEverythingOnWithoutStops) {
  StopMatcher matcher({"", ""});
  EXPECT_EQ(matcher.push("abc").text, "abc");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace espalier::text
