// The exported form of a state, little-endian:
//
//   "ESPSTATE", u32 version, u32 state count, i64 committed positions,
//   per state: u32 kind, u32 element bytes, i64 channels, i64 kv_heads, i64 head_dim, i64 rows,
//   per state: KV: per committed position K [channels] fp16, V [channels] fp16, or in 8 bits (element bytes 1) per head
//   K [head_dim] int8, its scale fp32, V [head_dim] int8, its scale fp32; convolution: [rows, channels] fp32.
//
// The reader refuses anything that does not fit the model it is read for, field by field, before a
// byte of content is touched. Both work on memory of the caller; no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::units::cpu {

struct StateLayout;

class StateBytesWriter {
 public:
  // Writes the header and makes room for the content.
  StateBytesWriter(const StateLayout& layout, int64_t committed);
  void append(std::span<const std::byte> bytes);
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  size_t written_ = 0;
};

class StateBytesReader {
 public:
  // Checks the header against `layout` and the size against the header. The span must outlive the
  // reader.
  static Result<StateBytesReader> open(const StateLayout& layout, std::span<const std::byte> bytes);
  int64_t committed() const { return committed_; }
  // The next bytes of the content; there are exactly as many as the layout asks for.
  void read(std::span<std::byte> out);

 private:
  StateBytesReader(std::span<const std::byte> content, int64_t committed)
      : content_(content), committed_(committed) {}
  std::span<const std::byte> content_;
  int64_t committed_;
};

}  // namespace espalier::units::cpu
