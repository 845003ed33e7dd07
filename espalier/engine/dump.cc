#include "espalier/engine/dump.h"

#include <algorithm>
#include <vector>

#include "espalier/formats/safetensors_writer.h"

namespace espalier::engine {
namespace {

constexpr int64_t kPieceElements = 1 << 20;  // 4 MiB of fp32 at a time

Error stopped_error() {
  return Error{
      .what = "the dump was stopped", .expected = {}, .actual = {}, .fix = "Nothing was written."};
}

// Rows 2i and 2i + 1 of every head become i and i + n; of a bias, its values.
void separate_pairs(const models::PairedRows& paired, size_t columns, std::span<float> heads) {
  const size_t head_size = static_cast<size_t>(paired.head_rows) * columns;
  const auto pairs = static_cast<size_t>(paired.rotated_rows / 2);
  std::vector<float> old(head_size);
  for (; !heads.empty(); heads = heads.subspan(head_size)) {
    std::copy_n(heads.begin(), head_size, old.begin());
    for (size_t row = 0; row < 2 * pairs; ++row) {
      const size_t target = row / 2 + (row % 2) * pairs;
      std::copy_n(&old[row * columns], columns, &heads[target * columns]);
    }
  }
}

Status append_tensor(const Engine& engine, const TensorInfo& tensor,
                     const std::atomic<bool>* stopped, formats::SafetensorsWriter& writer) {
  const int64_t index = engine.executable().weight_index(tensor.name);
  CHECK_GE(index, 0);
  const TensorView shape{.encoding = tensor.encoding, .shape = tensor.shape, .bytes = {}};
  const int64_t columns = shape.columns();
  const models::PairedRows& paired = engine.model().paired_rows;
  const bool is_paired = std::ranges::find(paired.tensors, tensor.name) != paired.tensors.end();
  int64_t piece_rows = std::max<int64_t>(1, kPieceElements / columns);
  if (is_paired)
    piece_rows = std::max(piece_rows / paired.head_rows, int64_t{1}) * paired.head_rows;
  std::vector<float> piece(static_cast<size_t>(std::min(piece_rows, shape.rows()) * columns));
  for (int64_t row = 0; row < shape.rows(); row += piece_rows) {
    if (stopped != nullptr && *stopped) return stopped_error();
    const int64_t row_count = std::min(piece_rows, shape.rows() - row);
    const auto values = std::span(piece).first(static_cast<size_t>(row_count * columns));
    engine.executable().read_weight_rows(index, row, row_count, values);
    if (is_paired) {
      const bool is_bias = tensor.shape.size() == 1;
      separate_pairs(paired, is_bias ? 1 : static_cast<size_t>(columns), values);
    }
    RETURN_IF_ERROR(writer.append(std::as_bytes(values)));
  }
  return Ok{};
}

}  // namespace

Status dump_weights(const Engine& engine, const std::string& path,
                    const std::atomic<bool>* stopped) {
  std::vector<formats::TensorDeclaration> declarations;
  for (const TensorInfo& tensor : engine.tensors()) {
    declarations.push_back({.name = tensor.name, .shape = tensor.shape});
  }
  ASSIGN_OR_RETURN(formats::SafetensorsWriter writer,
                   formats::SafetensorsWriter::create(
                       path, declarations, {{"format", "pt"}, {"row_order", "huggingface"}}));
  for (const TensorInfo& tensor : engine.tensors()) {
    RETURN_IF_ERROR(append_tensor(engine, tensor, stopped, writer));
  }
  return writer.finish();
}

}  // namespace espalier::engine
