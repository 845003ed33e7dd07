// The numbered types of GGUF: metadata values and tensors, one table each.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/base/dtype.h"
#include "espalier/formats/gguf.h"

namespace espalier::formats {

struct GgufTypeInfo {
  enum class Kind { kSigned, kUnsigned, kFloat, kBool, kString, kArray };
  GgufType type;
  std::string_view name;
  Kind kind;
  uint64_t bytes;  // of a value; for strings and arrays of the shortest one
};

// nullptr for a number that the specification does not have.
const GgufTypeInfo* gguf_type_info(uint32_t number);
const GgufTypeInfo& gguf_type_info(GgufType type);

struct GgufTensorType {
  uint32_t number;
  std::string_view name;             // ggml's: "Q4_1"
  std::optional<Encoding> encoding;  // absent: known to ggml, not supported here
};

const GgufTensorType* gguf_tensor_type(uint32_t number);

}  // namespace espalier::formats
