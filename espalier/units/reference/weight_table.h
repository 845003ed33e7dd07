// WeightTable: the weights of a program set as fp32 rows. Cached at compile where that fits in
// memory, otherwise turned into fp32 a row at a time while running. Immutable after make(); safe to
// read from any thread. The checkpoint's bytes must outlive it (the table keeps a copy of the
// Weights object, which owns them).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"

namespace espalier::units::reference {

// fp32 weights of at most so many bytes are cached.
inline constexpr int64_t kMaxCacheBytes = int64_t{6} << 30;

// The rows of one program::Weight.
struct Matrix {
  TensorView view;           // [rows, columns] as stored
  std::vector<float> cache;  // [rows, columns]; empty where it is not cached

  int64_t rows() const { return view.shape[0]; }
  int64_t columns() const { return view.shape[1]; }
  // Row `index`, [columns]; `scratch` holds at least so many and may be where the row is put.
  const float* row(int64_t index, std::span<float> scratch) const;
  // A vector of n elements, whether it is one row or n rows of one column. Small enough to be
  // cached always.
  const float* vector() const { return cache.data(); }
};

class WeightTable {
 public:
  // Fails where a tensor is missing or has the wrong shape.
  static Result<std::unique_ptr<WeightTable>> make(const program::ProgramSet& programs,
                                                   const Weights& weights,
                                                   const std::string& embedding_tensor);

  const Matrix& matrix(const program::Weight& weight) const;
  int64_t cache_bytes() const { return cache_bytes_; }
  int64_t max_columns() const { return max_columns_; }

  // Whole tensors by name, for the embedding and for dumps.
  int64_t tensor_index(std::string_view name) const;
  void read_rows(int64_t tensor_index, int64_t first_row, int64_t row_count,
                 std::span<float> out) const;

 private:
  explicit WeightTable(Weights weights) : weights_(std::move(weights)) {}
  Status add(const program::Weight& weight);
  Status add_tensor(const std::string& name);

  using Key = std::tuple<std::string, int64_t, int64_t>;  // tensor, first row, rows
  static Key key_of(const program::Weight& weight) {
    return {weight.tensor, weight.first_row, weight.rows};
  }

  Weights weights_;
  std::map<Key, Matrix> matrices_;
  std::vector<std::pair<std::string, TensorView>> tensors_;
  int64_t cache_bytes_ = 0;
  int64_t max_columns_ = 0;
};

}  // namespace espalier::units::reference
