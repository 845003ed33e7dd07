#include "espalier/engine/dump.h"

#include <algorithm>
#include <vector>

#include "espalier/formats/safetensors_writer.h"

namespace espalier::engine {
namespace {

constexpr int64_t kPieceElements = 1 << 20;  // 4 MiB of fp32 at a time

Status append_tensor(const Engine& engine, const TensorInfo& tensor,
                     formats::SafetensorsWriter& writer) {
  const int64_t index = engine.executable().weight_index(tensor.name);
  CHECK_GE(index, 0);
  const TensorView shape{.encoding = tensor.encoding, .shape = tensor.shape, .bytes = {}};
  const int64_t columns = shape.columns();
  const int64_t piece_rows = std::max<int64_t>(1, kPieceElements / columns);
  std::vector<float> piece(static_cast<size_t>(std::min(piece_rows, shape.rows()) * columns));
  for (int64_t row = 0; row < shape.rows(); row += piece_rows) {
    const int64_t row_count = std::min(piece_rows, shape.rows() - row);
    const auto values = std::span(piece).first(static_cast<size_t>(row_count * columns));
    engine.executable().read_weight_rows(index, row, row_count, values);
    RETURN_IF_ERROR(writer.append(std::as_bytes(values)));
  }
  return Ok{};
}

}  // namespace

Status dump_weights(const Engine& engine, const std::string& path) {
  std::vector<formats::TensorDeclaration> declarations;
  for (const TensorInfo& tensor : engine.tensors()) {
    declarations.push_back({.name = tensor.name, .shape = tensor.shape});
  }
  ASSIGN_OR_RETURN(formats::SafetensorsWriter writer,
                   formats::SafetensorsWriter::create(path, declarations, {{"format", "pt"}}));
  for (const TensorInfo& tensor : engine.tensors()) {
    RETURN_IF_ERROR(append_tensor(engine, tensor, writer));
  }
  return writer.finish();
}

}  // namespace espalier::engine
