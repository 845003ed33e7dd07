// GgufBuilder: GGUF files for tests, right or wrong as the test wants them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/formats/gguf.h"

namespace espalier::formats {

class GgufBuilder {
 public:
  // What the header says, where it is not what was added.
  uint32_t version = 3;
  int64_t tensor_count = -1;
  int64_t entry_count = -1;

  template <typename T>
  GgufBuilder& entry(std::string_view key, GgufType type, T value) {
    begin_entry(key, type);
    put(entries_, value);
    return *this;
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    begin_entry(key, GgufType::kString);
    put_string(entries_, value);
    return *this;
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) {
    return entry(key, GgufType::kUint32, value);
  }
  GgufBuilder& f32(std::string_view key, float value) {
    return entry(key, GgufType::kFloat32, value);
  }
  template <typename T>
  GgufBuilder& array(std::string_view key, GgufType type, const std::vector<T>& values) {
    begin_array(key, type, values.size());
    for (const T& value : values) put(entries_, value);
    return *this;
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, GgufType::kString, values.size());
    for (const std::string& value : values) put_string(entries_, value);
    return *this;
  }
  // The beginning of an array whose elements the caller adds, or not.
  GgufBuilder& begin_array(std::string_view key, GgufType type, uint64_t count) {
    begin_entry(key, GgufType::kArray);
    put(entries_, type);
    put(entries_, count);
    return *this;
  }
  template <typename T>
  GgufBuilder& raw(T value) {
    put(entries_, value);
    return *this;
  }

  // `extents` innermost first, as in the file; data at `offset`.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& extents, uint32_t type,
                      uint64_t offset) {
    ++tensors_added_;
    put_string(tensors_, name);
    put(tensors_, static_cast<uint32_t>(extents.size()));
    for (const uint64_t extent : extents) put(tensors_, extent);
    put(tensors_, type);
    put(tensors_, offset);
    return *this;
  }
  // A float tensor with its data behind that of those before it.
  GgufBuilder& floats(std::string_view name, const std::vector<uint64_t>& extents) {
    uint64_t elements = 1;
    for (const uint64_t extent : extents) elements *= extent;
    const uint64_t offset = data_bytes_;
    data_bytes_ += (elements * sizeof(float) + 31) / 32 * 32;
    return tensor(name, extents, 0, offset);
  }
  GgufBuilder& data(size_t bytes) {
    data_bytes_ = bytes;
    return *this;
  }

  std::vector<std::byte> build(size_t alignment = 32) const {
    std::vector<std::byte> file;
    put(file, std::array{'G', 'G', 'U', 'F'});
    put(file, version);
    put(file, tensor_count >= 0 ? tensor_count : tensors_added_);
    put(file, entry_count >= 0 ? entry_count : entries_added_);
    file.insert(file.end(), entries_.begin(), entries_.end());
    file.insert(file.end(), tensors_.begin(), tensors_.end());
    if (data_bytes_ > 0)
      file.resize((file.size() + alignment - 1) / alignment * alignment + data_bytes_);
    return file;
  }

 private:
  template <typename T>
  static void put(std::vector<std::byte>& to, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof(T));
  }
  static void put_string(std::vector<std::byte>& to, std::string_view text) {
    put(to, static_cast<uint64_t>(text.size()));
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    to.insert(to.end(), bytes, bytes + text.size());
  }
  void begin_entry(std::string_view key, GgufType type) {
    ++entries_added_;
    put_string(entries_, key);
    put(entries_, type);
  }

  std::vector<std::byte> entries_, tensors_;
  int64_t entries_added_ = 0;
  int64_t tensors_added_ = 0;
  uint64_t data_bytes_ = 0;
};

}  // namespace espalier::formats
