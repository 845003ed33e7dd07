// SafetensorsWriter: writes a safetensors file of any size with little memory. Tensors are declared
// first, then their bytes are appended in the order of declaration, in pieces of any size. The file
// appears under its name only when finish() succeeds (base/atomic_file.h). One thread at a time.
//
//   ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::create(path, declarations, {}));
//   for (each tensor, each row) RETURN_IF_ERROR(writer.append(std::as_bytes(row)));
//   RETURN_IF_ERROR(writer.finish());
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/atomic_file.h"
#include "espalier/base/dtype.h"
#include "espalier/base/result.h"

namespace espalier::formats {

struct TensorDeclaration {
  std::string name;
  std::vector<int64_t> shape;
  Encoding encoding = Encoding::kF32;  // one that the format has: a plain type
};

class SafetensorsWriter {
 public:
  // `metadata` becomes "__metadata__"; transformers wants {"format", "pt"} there.
  static Result<SafetensorsWriter> create(const std::string& path,
                                          std::span<const TensorDeclaration> tensors,
                                          const std::map<std::string, std::string>& metadata);
  Status append(std::span<const std::byte> bytes);
  // Every declared byte must have been appended; the writer cannot be used afterwards.
  Status finish();

 private:
  SafetensorsWriter(AtomicFile file, uint64_t data_bytes)
      : file_(std::move(file)), bytes_left_(data_bytes) {}

  AtomicFile file_;
  uint64_t bytes_left_ = 0;
};

}  // namespace espalier::formats
