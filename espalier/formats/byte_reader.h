// ByteReader: a cursor over untrusted little-endian bytes that never reads past their end. Each
// read says whether it succeeded; a failed read moves nothing. Does not own the bytes. Host must be
// little endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace espalier::formats {

static_assert(std::endian::native == std::endian::little,
              "formats read little-endian files in place");

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

  [[nodiscard]] bool take(uint64_t count, std::span<const std::byte>& out) {
    if (count > remaining()) return false;
    out = bytes_.subspan(offset_, static_cast<size_t>(count));
    offset_ += static_cast<size_t>(count);
    return true;
  }

  template <typename T>
  [[nodiscard]] bool read(T& out) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<const std::byte> source;
    if (!take(sizeof(T), source)) return false;
    std::memcpy(&out, source.data(), sizeof(T));
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t offset_ = 0;
};

}  // namespace espalier::formats
