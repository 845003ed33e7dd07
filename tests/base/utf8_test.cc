#include "espalier/base/utf8.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "espalier/base/json.h"

namespace espalier {
namespace {

// The JSON library checks UTF-8 as well, by a table that nobody here wrote.
bool is_valid_utf8(std::string_view text) { return !invalid_utf8_at(text).has_value(); }
bool json_accepts(const std::string& text) { return Json::accept(fmt::format("\"{}\"", text)); }

TEST(Utf8, EverySequenceOfUpToThreeBytesIsJudgedAsTheJsonLibraryDoes) {
  for (int first = 0x80; first < 256; ++first) {
    for (int second = 0x7f; second <= 0xc0; ++second) {
      for (const int third : {0x7f, 0x80, 0xbf, 0xc0}) {
        const std::string text = {static_cast<char>(first), static_cast<char>(second),
                                  static_cast<char>(third)};
        ASSERT_EQ(is_valid_utf8(text), json_accepts(text))
            << first << " " << second << " " << third;
        const std::string two = text.substr(0, 2);
        ASSERT_EQ(is_valid_utf8(two), json_accepts(two)) << first << " " << second;
      }
    }
  }
}

TEST(Utf8, RandomSequencesAreJudgedAsTheJsonLibraryDoes) {
  static constexpr unsigned char kBytes[] = {'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                             0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef,
                                             0xf0, 0xf3, 0xf4, 0xf5, 0xff};
  std::mt19937 random(6);
  int valid = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    for (size_t length = random() % 6; length > 0; --length)
      text += static_cast<char>(kBytes[random() % std::size(kBytes)]);
    ASSERT_EQ(is_valid_utf8(text), json_accepts(text));
    valid += is_valid_utf8(text) && text.size() == 4 ? 1 : 0;
  }
  EXPECT_GT(valid, 5);
}

TEST(Utf8, ReplacesEveryMaximalIllFormedPartByOneCharacter) {
  const std::string bad(kReplacementCharacter);
  EXPECT_EQ(replace_invalid_utf8("a\xC3\xA9z"), "a\u00e9z");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x90\x80"
                                 "a"),
            bad + "a");                                              // cut off after three bytes
  EXPECT_EQ(replace_invalid_utf8("\xC0\x80"), bad + bad);            // overlong
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), bad + bad + bad);  // surrogate
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), bad);
}

TEST(Utf8, SpellsOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain, naïve, 日本 \U0001F600 \\n"), "plain, naïve, 日本 \U0001F600 \\n");
  EXPECT_EQ(printable("\033[31mred\n\r\t\b\x7f"), "\\x1B[31mred\\n\\r\\t\\x08\\x7F");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\u009b1m"), "\\xC2\\x9B1m");  // CSI in one character
  EXPECT_EQ(printable("\xff\xe2\x82"), "\\xFF\\xE2\\x82");
  for (int byte = 0; byte < 256; ++byte) {
    for (const char shown : printable(std::string(1, static_cast<char>(byte)))) {
      EXPECT_GE(shown, ' ');
      EXPECT_NE(shown, '\x7f');
    }
  }
}

TEST(Utf8, ReadsBackEveryCharacterThatItWrites) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_FALSE(invalid_utf8_at(text));
    ASSERT_EQ(character_at(text, 0).code_point, c);
    ASSERT_EQ(character_before("a" + text, text.size() + 1).code_point, c);
  }
}

}  // namespace
}  // namespace espalier
