#include "espalier/base/checksum.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace espalier {
namespace {

uint64_t of(std::string_view text) { return checksum(std::as_bytes(std::span(text))); }

// Made with python-xxhash: xxhash.xxh64_intdigest(...).
TEST(Checksum, EqualsXxhash) {
  EXPECT_EQ(of(""), 0xef46db3751d8e999);
  EXPECT_EQ(of("a"), 0xd24ec4f1a98c6e5b);
  EXPECT_EQ(of("abc"), 0x44bc2cf5ad770999);
  EXPECT_EQ(of("espalier"), 0x00716c62a6ac4276);
  EXPECT_EQ(of("0123456789a"), 0xd9dc70d959571db7);
  EXPECT_EQ(of("0123456789abcdefghijklmnopqrstuv"), 0xbf7c9dbe16b5c6e2);
  EXPECT_EQ(of("0123456789abcdefghijklmnopqrstuv0123456789abcdefghijklmnopqrstuv0123456"),
            0xed842f39ba0ee9d7);
}

TEST(Checksum, ChangesWithEachBit) {
  std::vector<std::byte> bytes(100, std::byte{7});
  const uint64_t whole = checksum(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_NE(checksum(bytes), whole) << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
  EXPECT_NE(checksum(std::span(bytes).first(99)), whole);
}

}  // namespace
}  // namespace espalier
