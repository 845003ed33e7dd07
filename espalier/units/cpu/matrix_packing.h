// MatrixPacking: the matrices of a checkpoint on their way into a packed payload: where each will
// lie in it, in which blocks it is packed, and the key that all of it depends on.
//
// Refers to the checkpoint's bytes; the content it gives refers to it. Used while a model is
// compiled, and gone afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/units/cpu/linear.h"
#include "espalier/units/cpu/packed_file.h"

namespace espalier::units::cpu {

// What packed bytes of the same weights and options look like: another number where linear_layout.h
// or linear_pack.cc write others than before. A test holds it against checksums of packed weights.
inline constexpr int kPackedVersion = 2;

struct SourceMatrix {
  std::string tensor;
  int64_t first_row = 0;  // in the tensor
  TensorView rows;        // those that are packed
};

class MatrixPacking {
 public:
  // Errors: an encoding that cannot be multiplied.
  static Result<MatrixPacking> plan(std::vector<SourceMatrix> sources, FloatMode floats);

  // The key is made of `identity` (of the checkpoint's files), of samples of every matrix, and of
  // all that the packed bytes depend on.
  PackedContent content(const std::string& identity) const;
  // The matrices, in the order of the sources, over a payload of that content.
  std::vector<PackedLinear> matrices(const std::byte* payload) &&;

 private:
  struct Part {  // of a matrix: what a block holds
    size_t matrix = 0;
    int64_t first_panel = 0;
    int64_t panel_count = 0;
  };

  std::string key(const std::string& identity) const;
  Status pack(size_t block, std::byte* out) const;
  void add(PackedLinear matrix);

  std::vector<SourceMatrix> sources_;
  std::vector<PackedLinear> matrices_;
  std::vector<int64_t> offsets_;  // of the matrices, in the payload
  std::vector<PackedBlock> blocks_;
  std::vector<Part> parts_;  // of the blocks
  FloatMode floats_ = FloatMode::kInt8Channel;
};

}  // namespace espalier::units::cpu
