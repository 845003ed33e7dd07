// A packed content of numbers, for the tests of packed files and of their folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "espalier/units/cpu/packed_file.h"

namespace espalier::units::cpu {

// Blocks of one size; all bytes of block i of the key k are (length of k + i) modulo 256.
inline PackedContent numbered_content(const std::string& key, size_t block_count,
                                      int64_t block_bytes) {
  PackedContent content;
  content.key = key;
  for (size_t i = 0; i < block_count; ++i) {
    content.blocks.push_back({.offset = static_cast<int64_t>(i) * block_bytes,
                              .byte_count = block_bytes,
                              .place = static_cast<double>(i) / static_cast<double>(block_count)});
  }
  content.pack = [first = key.size(), block_bytes](size_t block, std::byte* out) -> Status {
    std::fill_n(out, block_bytes, static_cast<std::byte>(first + block));
    return Ok{};
  };
  return content;
}

inline bool holds_content(const PackedPayload& payload, const PackedContent& content) {
  std::vector<std::byte> expected;
  for (size_t i = 0; i < content.blocks.size(); ++i) {
    expected.resize(static_cast<size_t>(content.blocks[i].byte_count));
    if (!content.pack(i, expected.data()).ok()) return false;
    if (!std::equal(expected.begin(), expected.end(), payload.bytes + content.blocks[i].offset)) {
      return false;
    }
  }
  return true;
}

}  // namespace espalier::units::cpu
