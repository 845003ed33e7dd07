// safetensors: one file, or a sharded set with an index. Memory-mapped and zero copy: views point
// into the mapped files. Checked as the reference implementation checks (header at most 100 MB,
// offsets contiguous and covering the data exactly, size equal to dtype times shape, no alignment
// promised); a name that appears twice is refused too. Immutable after reading; safe to read from
// any thread. Not for writing (formats/safetensors_writer.h) and without knowledge of models.
#pragma once

#include <cstddef>
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

struct Safetensors {
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;            // of the file; empty for a sharded set
  std::vector<std::shared_ptr<const MappedFile>> owners;  // keep the bytes behind the views alive
  std::vector<std::string> files;                         // that it was read from
};

// A file that is already in memory; views point into `bytes` and `owners` stays empty. `source`
// names it in errors.
Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& source);

Result<Safetensors> open_safetensors(const std::string& path);

// `index_path`: model.safetensors.index.json, whose weight_map says which file beside it holds
// which tensor. Tensors that the index does not name are left out.
Result<Safetensors> open_sharded_safetensors(const std::string& index_path);

// The dtype of the format with this encoding ("BF16"); empty for encodings that the format does not
// have.
std::string_view safetensors_dtype(Encoding encoding);

}  // namespace espalier::formats
