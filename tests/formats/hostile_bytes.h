// Damaged variants of a file, for readers that must refuse or accept each but never go wrong. Every
// variant is a heap allocation of its exact size, so that a sanitizer sees the first byte read past
// its end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "espalier/base/dequantize.h"
#include "espalier/base/weights.h"

namespace espalier {

using Bytes = std::vector<std::byte>;

inline Bytes read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Bytes bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Calls visit(bytes) with every shorter beginning of `file`.
template <typename Visit>
void for_each_truncation(const Bytes& file, Visit visit) {
  for (size_t size = 0; size < file.size(); ++size) visit(Bytes(file.begin(), file.begin() + size));
}

// Calls visit(bytes) with `count` copies in which one to four things are wrong: a bit, a byte, or
// eight bytes that become one of the numbers that overflow something.
template <typename Visit>
void for_each_mutation(const Bytes& file, size_t mutable_bytes, int count, uint32_t seed,
                       Visit visit) {
  static constexpr std::array<uint64_t, 8> kNumbers = {0,
                                                       1,
                                                       0xff,
                                                       0x7fffffff,
                                                       0xffffffff,
                                                       0x7fffffffffffffff,
                                                       0x8000000000000000,
                                                       0xffffffffffffffff};
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return random() % limit; };
  for (int i = 0; i < count; ++i) {
    Bytes bytes = file;
    for (size_t wrong = 1 + below(4); wrong > 0; --wrong) {
      const size_t at = below(mutable_bytes);
      const auto kind = below(3);
      if (kind == 0) bytes[at] ^= std::byte(1u << below(8));
      if (kind == 1) bytes[at] = std::byte(below(256));
      if (kind == 2) {
        const uint64_t number = kNumbers[below(kNumbers.size())];
        std::memcpy(&bytes[at], &number, std::min<size_t>(sizeof(number), bytes.size() - at));
      }
    }
    visit(bytes);
  }
}

// What every accepted file promises: views of the right size, all of whose bytes can be read.
inline void expect_sound(const std::map<std::string, TensorView>& tensors) {
  for (const auto& [name, view] : tensors) {
    const int64_t elements = view.element_count();
    ASSERT_GE(elements, 0) << name;
    if (elements == 0) continue;
    ASSERT_EQ(static_cast<int64_t>(view.bytes.size()), view.rows() * view.row_bytes()) << name;
    std::vector<float> values(static_cast<size_t>(elements));
    dequantize(view, values);
  }
}

}  // namespace espalier
