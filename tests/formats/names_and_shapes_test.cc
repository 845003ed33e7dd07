// The small checks that readers stand on: UTF-8 and sizes.
#include <gtest/gtest.h>

#include <random>

#include "espalier/base/json.h"
#include "espalier/formats/shape.h"
#include "espalier/formats/utf8.h"

namespace espalier::formats {
namespace {

// The JSON library checks UTF-8 as well, by a table that nobody here wrote.
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

TEST(TensorBytes, AreCountedInWholeBlocks) {
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{}), 4);
  EXPECT_EQ(tensor_bytes(Encoding::kBF16, Shape{3, 5}), 30);
  EXPECT_EQ(tensor_bytes(Encoding::kQ6_K, Shape{2, 512}), 4 * 210);
  EXPECT_EQ(tensor_bytes(Encoding::kQ6_K, Shape{512, 2}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{7, 0, 3}), 0);
  EXPECT_EQ(tensor_bytes(Encoding::kF32, Shape{-1}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{INT64_MAX}), INT64_MAX);
  EXPECT_EQ(tensor_bytes(Encoding::kI16, Shape{INT64_MAX}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{int64_t{1} << 32, int64_t{1} << 31}), std::nullopt);
  EXPECT_EQ(tensor_bytes(Encoding::kI8, Shape{INT64_MAX, 2, 0}), std::nullopt);
}

}  // namespace
}  // namespace espalier::formats
