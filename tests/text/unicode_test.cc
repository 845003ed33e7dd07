#include "espalier/text/unicode.h"

#include <gtest/gtest.h>

#include "espalier/base/utf8.h"
#include "espalier/text/unicode_normalize.h"

namespace espalier::text {
namespace {

TEST(Unicode, StandInsHaveTheSameSizeAndStandForThemselves) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const char32_t stand_in = regex_stand_in(c);
    if (stand_in == c) continue;
    std::string text, other;
    append_utf8(text, c);
    append_utf8(other, stand_in);
    ASSERT_EQ(text.size(), other.size());
    ASSERT_EQ(regex_stand_in(stand_in), stand_in);
  }
}

TEST(Unicode, LowercasesAsRustDoes) {
  const auto lower = [](char32_t c) {
    std::string text;
    append_lowercase(text, c);
    return text;
  };
  EXPECT_EQ(lower('A'), "a");
  EXPECT_EQ(lower('a'), "a");
  EXPECT_EQ(lower(0x130), "i\u0307");
  EXPECT_EQ(lower(0x10D50), "\U00010D70");  // Garay, Unicode 16
  EXPECT_EQ(lower(0x1E9E), "\u00df");
}

TEST(Unicode, NormalisesHundredThousandMarksInARowInTime) {
  std::string text = "a";
  for (int i = 0; i < 100000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";  // above, below
  ASSERT_EQ(normalization_unit(text), text.size());
  const std::string nfd = normalize_unit(text, NormalForm::kNfd);
  EXPECT_EQ(nfd.size(), text.size());
  EXPECT_EQ(nfd.substr(0, 5), "a\u0323\u0323");
}

TEST(Unicode, LeavesCharactersAloneThatAreNewerThanTheLibrarysTables) {
  EXPECT_EQ(normalize_unit("\u32FF", NormalForm::kNfkc), "\u32FF");  // the era of 2019
  EXPECT_EQ(normalize_unit("\u32FE", NormalForm::kNfkc), "\u30F2");
}

}  // namespace
}  // namespace espalier::text
