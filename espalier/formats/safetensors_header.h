// The JSON header of a safetensors file, read with a streaming parser, so that a hostile header
// costs no more memory than a multiple of its own size and nesting costs no stack. Rules of the
// reference implementation, stricter in one: a name may appear once only. Says nothing about data:
// formats/safetensors.h checks offsets against shapes and the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::formats {

struct SafetensorsHeader {
  struct Tensor {
    std::string name;
    std::string dtype;              // as written: "BF16"
    std::vector<uint64_t> shape;    // outermost first; empty for a scalar
    std::vector<uint64_t> offsets;  // two: begin and end in the data that follows the header
  };
  std::vector<Tensor> tensors;                  // in the header's order
  std::map<std::string, std::string> metadata;  // the "__metadata__" object
};

// `source` names the file in errors.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   const std::string& source);

}  // namespace espalier::formats
