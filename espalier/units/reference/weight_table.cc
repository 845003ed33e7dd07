#include "espalier/units/reference/weight_table.h"

#include "espalier/base/check.h"
#include "espalier/base/dequantize.h"
#include "espalier/program/weight_view.h"

namespace espalier::units::reference {
namespace {

// Vectors (norms, biases, taps of a convolution) are read as a whole and always cached.
constexpr int64_t kSmallElements = 1 << 20;

void read(const TensorView& view, int64_t first_row, int64_t row_count, std::span<float> out) {
  dequantize(view.row_range(first_row, row_count), out);
}

// Looks at every element of what is read a row at a time later.
Status check_rows_finite(const std::string& tensor, const TensorView& view) {
  std::vector<float> row(static_cast<size_t>(view.columns()));
  for (int64_t index = 0; index < view.rows(); ++index) {
    read(view, index, 1, row);
    RETURN_IF_ERROR(check_finite(fmt::format("tensor '{}'", tensor), row));
  }
  return Ok{};
}

Status check_blocks(const std::string& tensor, const TensorView& view) {
  const int64_t block = encoding_info(view.encoding).block_elements;
  if (view.columns() % block == 0) return Ok{};
  return Error{
      .what = fmt::format("tensor '{}' has rows that are no whole blocks", tensor),
      .expected = fmt::format("a multiple of {} columns ({})", block, name_of(view.encoding)),
      .actual = fmt::format("{}", view.columns()),
      .fix = "The file is damaged; convert the checkpoint again."};
}

}  // namespace

const float* Matrix::row(int64_t index, std::span<float> scratch) const {
  if (!cache.empty()) return cache.data() + index * columns();
  read(view, index, 1, scratch.first(static_cast<size_t>(columns())));
  return scratch.data();
}

Result<std::unique_ptr<WeightTable>> WeightTable::make(const program::ProgramSet& programs,
                                                       const Weights& weights,
                                                       const std::string& embedding_tensor) {
  std::unique_ptr<WeightTable> table(new WeightTable(weights));
  for (const auto& function : programs.functions) {
    for (const auto& weight : function.weights) RETURN_IF_ERROR(table->add(weight));
  }
  RETURN_IF_ERROR(table->add_tensor(embedding_tensor));
  ASSIGN_OR_RETURN(const TensorView embedding, weights.get(embedding_tensor));
  RETURN_IF_ERROR(check_rows_finite(embedding_tensor, embedding));

  int64_t cached_bytes = 0;
  for (const auto& [key, matrix] : table->matrices_)
    cached_bytes += matrix.view.element_count() * 4;
  for (auto& [key, matrix] : table->matrices_) {
    const std::string& tensor = std::get<0>(key);
    const int64_t elements = matrix.view.element_count();
    if (cached_bytes > kMaxCacheBytes && elements > kSmallElements) {
      RETURN_IF_ERROR(check_rows_finite(tensor, matrix.view));
      continue;
    }
    matrix.cache.resize(static_cast<size_t>(elements));
    read(matrix.view, 0, matrix.rows(), matrix.cache);
    RETURN_IF_ERROR(check_finite(fmt::format("tensor '{}'", tensor), matrix.cache));
    table->cache_bytes_ += elements * 4;
  }
  return table;
}

Status WeightTable::add(const program::Weight& weight) {
  ASSIGN_OR_RETURN(const TensorView view, program::weight_view(weight, weights_));
  RETURN_IF_ERROR(check_blocks(weight.tensor, view));
  max_columns_ = std::max(max_columns_, view.columns());
  matrices_.try_emplace(key_of(weight), Matrix{.view = view, .cache = {}});
  return add_tensor(weight.tensor);
}

Status WeightTable::add_tensor(const std::string& name) {
  if (tensor_index(name) >= 0) return Ok{};
  ASSIGN_OR_RETURN(const TensorView view, weights_.get(name));
  RETURN_IF_ERROR(check_blocks(name, view));
  tensors_.emplace_back(name, view);
  return Ok{};
}

const Matrix& WeightTable::matrix(const program::Weight& weight) const {
  const auto found = matrices_.find(key_of(weight));
  CHECK(found != matrices_.end());
  return found->second;
}

int64_t WeightTable::tensor_index(std::string_view name) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].first == name) return static_cast<int64_t>(i);
  }
  return -1;
}

void WeightTable::read_rows(int64_t tensor_index, int64_t first_row, int64_t row_count,
                            std::span<float> out) const {
  const TensorView& view = tensors_.at(static_cast<size_t>(tensor_index)).second;
  CHECK_GE(first_row, 0);
  CHECK_LE(first_row + row_count, view.rows());
  read(view, first_row, row_count, out);
}

}  // namespace espalier::units::reference
