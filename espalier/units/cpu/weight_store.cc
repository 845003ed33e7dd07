#include "espalier/units/cpu/weight_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/base/dequantize.h"
#include "espalier/program/weight_view.h"
#include "espalier/units/cpu/matrix_packing.h"

namespace espalier::units::cpu {

using program::Op;
using program::OpKind;
using program::Weight;

Result<std::unique_ptr<WeightStore>> WeightStore::build(const program::ProgramSet& programs,
                                                        const Weights& weights,
                                                        const std::string& embedding_tensor,
                                                        const PackingOptions& options,
                                                        ThreadPool& pool) try {
  auto store = std::make_unique<WeightStore>();
  ASSIGN_OR_RETURN(const TensorView embedding, weights.get(embedding_tensor));
  store->add({.tensor = embedding_tensor,
              .first_row = 0,
              .rows = embedding.rows(),
              .columns = embedding.columns(),
              .tensor_rows = embedding.rows()},
             Role::kMatrix);
  for (const auto& function : programs.functions) store->collect(function);
  RETURN_IF_ERROR(store->fill_floats(weights));
  RETURN_IF_ERROR(store->fill_matrices(weights, options, pool));

  std::map<std::string, std::vector<size_t>> by_tensor;
  for (const auto& [key, piece] : store->index_) by_tensor[std::get<1>(key)].push_back(piece);
  for (auto& [name, pieces] : by_tensor) {
    ASSIGN_OR_RETURN(const TensorView view, weights.get(name));
    store->tensors_.push_back({name, view.rows(), view.columns(), std::move(pieces)});
  }
  return store;
} catch (const std::bad_alloc&) {
  return out_of_memory_error("no memory to pack the weights", {},
                             "Use a smaller model or a smaller encoding.");
}

// Which weights of an op are matrices of a product: the first of linear and of the heads. The first
// of short_conv holds taps; everything else (norms, biases) is a vector.
void WeightStore::collect(const program::Program& program) {
  for (const Op& op : program.ops) {
    const bool is_product = op.kind == OpKind::kLinear || op.kind == OpKind::kHeadArgmax ||
                            op.kind == OpKind::kHeadLogits;
    for (size_t slot = 0; slot < op.weights.size(); ++slot) {
      Role role = Role::kVector;
      if (slot == 0 && is_product) role = Role::kMatrix;
      if (slot == 0 && op.kind == OpKind::kShortConv) role = Role::kTaps;
      add(program.weights[static_cast<size_t>(op.weights[slot])], role);
    }
  }
}

void WeightStore::add(const Weight& weight, Role role) {
  if (index_.try_emplace(key_of(weight, role), pieces_.size()).second) {
    pieces_.push_back({.weight = weight, .role = role, .matrix = std::nullopt, .floats = {}});
  }
}

Status WeightStore::fill_floats(const Weights& weights) {
  for (Piece& piece : pieces_) {
    if (piece.role == Role::kMatrix) continue;
    ASSIGN_OR_RETURN(const TensorView view, program::weight_view(piece.weight, weights));
    std::vector<float> stored(static_cast<size_t>(view.element_count()));
    dequantize(view, stored);
    RETURN_IF_ERROR(check_finite(fmt::format("tensor '{}'", piece.weight.tensor), stored));
    if (piece.role == Role::kVector) {
      piece.floats = std::move(stored);
      continue;
    }
    piece.floats.resize(stored.size());
    const auto channels = static_cast<size_t>(view.rows()),
               kernel = static_cast<size_t>(view.columns());
    for (size_t c = 0; c < channels; ++c) {
      for (size_t k = 0; k < kernel; ++k) piece.floats[k * channels + c] = stored[c * kernel + k];
    }
  }
  return Ok{};
}

Status WeightStore::fill_matrices(const Weights& weights, const PackingOptions& options,
                                  ThreadPool& pool) {
  std::vector<SourceMatrix> sources;
  for (const Piece& piece : pieces_) {
    if (piece.role != Role::kMatrix) continue;
    ASSIGN_OR_RETURN(TensorView view, program::weight_view(piece.weight, weights));
    sources.push_back({piece.weight.tensor, piece.weight.first_row, std::move(view)});
  }
  ASSIGN_OR_RETURN(MatrixPacking packing, MatrixPacking::plan(std::move(sources), options.floats));
  // Without files behind them nothing tells these weights from others.
  const PackedCache cache = weights.identity().empty() ? PackedCache{} : options.cache;
  ASSIGN_OR_RETURN(packed_,
                   obtain_packed_weights(packing.content(weights.identity()), cache, pool));
  std::vector<PackedLinear> matrices = std::move(packing).matrices(packed_.payload.bytes);
  auto matrix = matrices.begin();
  for (Piece& piece : pieces_) {
    if (piece.role == Role::kMatrix) piece.matrix = std::move(*matrix++);
  }
  return Ok{};
}

const WeightStore::Piece& WeightStore::find(const Weight& weight, Role role) const {
  const auto found = index_.find(key_of(weight, role));
  CHECK(found != index_.end());
  return pieces_[found->second];
}

const PackedLinear& WeightStore::matrix(const Weight& weight) const {
  return *find(weight, Role::kMatrix).matrix;
}
const float* WeightStore::vector(const Weight& weight) const {
  return find(weight, Role::kVector).floats.data();
}
const float* WeightStore::taps(const Weight& weight) const {
  return find(weight, Role::kTaps).floats.data();
}

int64_t WeightStore::tensor_index(std::string_view tensor) const {
  const auto found = std::ranges::lower_bound(tensors_, tensor, {}, &Tensor::name);
  return found == tensors_.end() || found->name != tensor ? -1 : found - tensors_.begin();
}

// Counted in elements, because a part of a vector is read as rows of one column.
void WeightStore::read_rows(int64_t tensor_index, int64_t first_row, int64_t row_count,
                            std::span<float> out) const {
  const Tensor& tensor = tensors_.at(static_cast<size_t>(tensor_index));
  CHECK_GE(first_row, 0);
  CHECK_GE(row_count, 0);
  CHECK_LE(first_row + row_count, tensor.rows);
  CHECK_EQ(static_cast<int64_t>(out.size()), row_count * tensor.columns);
  std::fill(out.begin(), out.end(), 0.0f);
  const int64_t out_first = first_row * tensor.columns;
  const int64_t out_last = out_first + row_count * tensor.columns;
  for (const size_t index : tensor.pieces) {
    const Piece& piece = pieces_[index];
    const int64_t columns = piece.weight.columns;
    const int64_t piece_first = piece.weight.first_row * columns;
    const int64_t first = std::max(out_first, piece_first);
    const int64_t last = std::min(out_last, piece_first + piece.weight.rows * columns);
    if (first >= last) continue;
    read_piece(piece, (first - piece_first) / columns, (last - first) / columns,
               out.data() + (first - out_first));
  }
}

void WeightStore::read_piece(const Piece& piece, int64_t first_row, int64_t row_count, float* out) {
  const int64_t columns = piece.weight.columns;
  switch (piece.role) {
    case Role::kMatrix:
      piece.matrix->read_rows(first_row, row_count,
                              {out, static_cast<size_t>(row_count * columns)});
      return;
    case Role::kVector:
      std::copy_n(piece.floats.data() + first_row * columns, row_count * columns, out);
      return;
    case Role::kTaps:
      for (int64_t c = 0; c < row_count; ++c) {
        for (int64_t k = 0; k < columns; ++k) {
          out[c * columns + k] =
              piece.floats[static_cast<size_t>(k * piece.weight.rows + first_row + c)];
        }
      }
      return;
  }
}

int64_t WeightStore::byte_count() const {
  int64_t bytes = 0;
  for (const Piece& piece : pieces_) {
    bytes += static_cast<int64_t>(piece.floats.size() * sizeof(float));
    if (piece.matrix) bytes += piece.matrix->byte_count();
  }
  return bytes;
}

std::string WeightStore::summary() const {
  std::map<std::string, int64_t> counts;
  for (const Piece& piece : pieces_) {
    if (!piece.matrix) continue;
    ++counts[piece.matrix->description()];
  }
  std::string text;
  for (const auto& [name, count] : counts)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  return text;
}

}  // namespace espalier::units::cpu
