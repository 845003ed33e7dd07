// Weights: name -> view of a tensor as it is stored. Filled by formats, read by units. Views point
// into a memory-mapped file that the Weights object keeps alive; nothing is copied and nothing is
// touched until it is read. Immutable after construction; safe to read from any thread.
//
// Names are Hugging Face checkpoint names ("model.layers.0.self_attn.q_proj.weight") whatever the
// file format: formats/ translates GGUF names, so that models and units know one vocabulary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/dtype.h"
#include "espalier/base/result.h"

namespace espalier {

class MappedFile;

// Scale and offset of each block, where they lie in tensors of their own (EncodingInfo::scales_beside):
// [rows, columns / block_elements] each, of one type; empty otherwise.
struct BlockScales {
  Encoding encoding = Encoding::kF32;  // or kF16, kBF16
  std::span<const std::byte> scales;
  std::span<const std::byte> offsets;
};

// A tensor of `shape` (outermost first; the innermost dimension is contiguous and is the one that
// block encodings divide into blocks). `bytes` has exactly rows * row_bytes bytes and no alignment
// promise.
struct TensorView {
  Encoding encoding = Encoding::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  BlockScales beside = {};

  int64_t element_count() const;
  // Matrix reading: all dimensions but the last are rows. A 1-d tensor is one row.
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const;
  int64_t row_bytes() const;
  std::span<const std::byte> row(int64_t index) const;
  // Rows [first, first + count) as a matrix of their own.
  TensorView row_range(int64_t first, int64_t count) const;
  // All that is stored of it: `bytes`, scales, offsets; those that are not beside are empty.
  std::array<std::span<const std::byte>, 3> stored() const;
  int64_t byte_count() const;
};

std::string shape_text(std::span<const int64_t> shape);  // "[576, 1536]"

// A weight that is infinite or NaN would make every answer meaningless; `what` names the weight.
Error not_finite_error(const std::string& what);
Status check_finite(const std::string& what, std::span<const float> values);

class Weights {
 public:
  Weights() = default;
  // `owners` keep the mapped files (or buffers) behind the views alive.
  Weights(std::map<std::string, TensorView> tensors,
          std::vector<std::shared_ptr<const void>> owners)
      : tensors_(std::move(tensors)), owners_(std::move(owners)) {}
  // All views point into these files, whose identities make up that of the weights.
  static Weights of_files(std::map<std::string, TensorView> tensors,
                          const std::vector<std::shared_ptr<const MappedFile>>& files);

  const std::map<std::string, TensorView>& all() const { return tensors_; }
  // Of the files behind the views, one a line, in order; empty where there are none.
  const std::string& identity() const { return identity_; }
  bool contains(const std::string& name) const { return tensors_.contains(name); }
  // The tensor, or an error naming it, the nearest existing name, and the expected and actual
  // shape.
  Result<TensorView> get(const std::string& name) const;
  Result<TensorView> get(const std::string& name, std::span<const int64_t> expected_shape) const;

 private:
  std::map<std::string, TensorView> tensors_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::string identity_;
};

}  // namespace espalier
