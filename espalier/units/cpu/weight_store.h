// WeightStore: the weights of a program set as the cpu unit computes with them. Matrices of
// products are packed once, whichever and however many functions read them; vectors and convolution
// taps are fp32. What read_rows gives is what the kernels use, for the embedding lookup and for
// `dump`.
//
// Owns all of it, in memory or as a mapped file of the cache; the checkpoint is not needed
// afterwards. Immutable after build(); any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/threads.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"
#include "espalier/units/cpu/linear.h"
#include "espalier/units/cpu/packed_cache.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

struct PackingOptions {
  FloatMode floats = FloatMode::kInt8Channel;  // PackedLinear::pack
  PackedCache cache = {};
};

class WeightStore {
 public:
  // Packs on all threads of `pool`. `embedding_tensor` is packed whole even where no program reads
  // it. Errors: a tensor that is missing, has another shape or a value that is not finite; no
  // memory.
  static Result<std::unique_ptr<WeightStore>> build(const program::ProgramSet& programs,
                                                    const Weights& weights,
                                                    const std::string& embedding_tensor,
                                                    const PackingOptions& options,
                                                    ThreadPool& pool);

  // The three forms that ops read. The weight must have been used by an op of the program set in
  // that role.
  const PackedLinear& matrix(const program::Weight& weight) const;
  const float* vector(const program::Weight& weight) const;  // [rows * columns]
  const float* taps(const program::Weight& weight) const;    // [columns, rows]: transposed

  int64_t tensor_index(std::string_view tensor) const;  // -1: not part of the programs
  // Rows as the checkpoint counts them; those that no program reads are zero. No allocation.
  void read_rows(int64_t tensor_index, int64_t first_row, int64_t row_count,
                 std::span<float> out) const;

  int64_t byte_count() const;
  const PackedReport& packed_report() const { return packed_.report; }
  // Packed matrices by encoding and arithmetic: "q4_1: 210, q8_0: 1".
  std::string summary() const;

 private:
  enum class Role : uint8_t { kMatrix, kVector, kTaps };
  // A weight in one role; `matrix` or `floats` holds it.
  struct Piece {
    program::Weight weight;
    Role role = Role::kMatrix;
    std::optional<PackedLinear> matrix;
    std::vector<float> floats;
  };
  using Key = std::tuple<Role, std::string, int64_t, int64_t>;  // role, tensor, first row, rows

  static Key key_of(const program::Weight& weight, Role role) {
    return {role, weight.tensor, weight.first_row, weight.rows};
  }
  static void read_piece(const Piece& piece, int64_t first_row, int64_t row_count, float* out);

  void collect(const program::Program& program);
  void add(const program::Weight& weight, Role role);
  Status fill_floats(const Weights& weights);
  Status fill_matrices(const Weights& weights, const PackingOptions& options, ThreadPool& pool);
  const Piece& find(const program::Weight& weight, Role role) const;

  PackedWeights packed_;  // the panels of all matrices
  std::vector<Piece> pieces_;
  std::map<Key, size_t> index_;  // into pieces_
  // A tensor in the checkpoint's own shape, and its pieces in the order of `index_`.
  struct Tensor {
    std::string name;
    int64_t rows = 0;
    int64_t columns = 0;
    std::vector<size_t> pieces;
  };
  std::vector<Tensor> tensors_;  // sorted by name
};

}  // namespace espalier::units::cpu
