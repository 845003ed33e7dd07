// GGUF, versions 2 and 3, little endian: metadata and tensor views of a memory-mapped file or split
// set. Every count, length, offset and type is checked before it is used; nothing is allocated that
// the file does not have the bytes for, and tensor data is not touched. All views point into the
// mapped bytes: they live as long as `Gguf::owners`. Immutable after reading; safe to read from any
// thread. Not for writing, and without knowledge of models: names and keys are GGUF's own
// (formats/checkpoint.h translates them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/mapped_file.h"
#include "espalier/base/result.h"
#include "espalier/base/weights.h"

namespace espalier::formats {

// The numbers of the specification.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// A metadata value as it is stored, already walked through and found complete.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // of an array
  uint64_t count = 0;                        // elements of an array, else 1
  std::span<const std::byte> bytes;  // scalar, string with its length, or the array's elements
};

// Typed look-ups. An integer of any width is an integer; a number may be an integer or a float.
// Errors name the file, the key, the expected type and what was found. The `_or` forms fall back
// only where the key is absent: a key of the wrong type stays an error.
class GgufMetadata {
 public:
  using Entries = std::map<std::string, GgufValue, std::less<>>;

  GgufMetadata() = default;
  GgufMetadata(std::string source, Entries entries)
      : source_(std::move(source)), entries_(std::move(entries)) {}

  const Entries& entries() const { return entries_; }
  bool contains(std::string_view key) const { return entries_.contains(key); }
  bool is_array(std::string_view key) const;

  Result<std::string> string(std::string_view key) const;  // valid UTF-8
  Result<int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;
  Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;

  // Arrays, whole. Strings are views into the mapped file, any bytes (tokens need not be UTF-8).
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<float>> floats(std::string_view key) const;

 private:
  std::string source_;  // the file, for messages
  Entries entries_;
};

struct Gguf {
  GgufMetadata metadata;  // of the first file of a split set
  std::map<std::string, TensorView> tensors;
  std::vector<std::shared_ptr<const MappedFile>> owners;  // keep the bytes behind all views alive
  std::vector<std::string> files;                         // that it was read from
};

// `path`: a GGUF file; of a split set ("name-00001-of-00003.gguf") any file, the others are found
// beside it.
Result<Gguf> open_gguf(const std::string& path);

// One file that is already in memory; split keys are not followed and `owners` stays empty.
// `source` names it in errors.
Result<Gguf> parse_gguf(std::span<const std::byte> bytes, const std::string& source);

}  // namespace espalier::formats
