#include "espalier/units/cpu/matrix_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "espalier/base/checksum.h"
#include "espalier/base/mapped_file.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kLineBytes = 64;
// Packed, summed and written while it is in a core's second cache; a system call a megabyte costs
// nothing.
constexpr int64_t kBlockBytes = int64_t{1} << 20;
constexpr size_t kSampleBytes = 256;

// Beginning, middle and end: three pages to read, and unlikely to be the same in another version of
// a tensor.
std::array<std::span<const std::byte>, 3> samples_of(std::span<const std::byte> bytes) {
  const size_t size = std::min(bytes.size(), kSampleBytes);
  return {bytes.first(size), bytes.subspan((bytes.size() - size) / 2, size), bytes.last(size)};
}

uint64_t sample_checksum(const TensorView& view) {
  std::vector<uint64_t> checksums;
  for (const auto part : view.stored()) {
    for (const auto sample : samples_of(part)) checksums.push_back(checksum(sample));
  }
  return checksum(std::as_bytes(std::span(checksums)));
}

std::string encoding_text(const TensorView& view) {
  std::string text(espalier::name_of(view.encoding));
  if (encoding_info(view.encoding).scales_beside)
    text += fmt::format(" ({} scales)", espalier::name_of(view.beside.encoding));
  return text;
}

std::string_view name_of(FloatMode floats) {
  switch (floats) {
    case FloatMode::kInt8Channel:
      return "as int8";
    case FloatMode::kInt8Groups:
      return "as int8 in groups";
    case FloatMode::kKeep:
      break;
  }
  return "kept";
}

}  // namespace

Result<MatrixPacking> MatrixPacking::plan(std::vector<SourceMatrix> sources, FloatMode floats) {
  MatrixPacking packing;
  packing.floats_ = floats;
  for (const SourceMatrix& source : sources) {
    auto matrix = PackedLinear::plan(source.rows, floats);
    if (!matrix.ok()) return matrix.error().with_context(source.tensor);
    packing.add(std::move(matrix).value());
  }
  packing.sources_ = std::move(sources);
  return packing;
}

void MatrixPacking::add(PackedLinear matrix) {
  int64_t at = blocks_.empty() ? 0 : blocks_.back().offset + blocks_.back().byte_count;
  offsets_.push_back(at);
  const int64_t panel_bytes = matrix.layout().panel_bytes;
  const int64_t step = std::max<int64_t>(kBlockBytes / panel_bytes, 1);
  for (int64_t panel = 0; panel < matrix.panel_count(); panel += step) {
    const int64_t count = std::min(step, matrix.panel_count() - panel);
    parts_.push_back({matrices_.size(), panel, count});
    const bool is_last = panel + count == matrix.panel_count();
    int64_t end = at + count * panel_bytes;
    if (is_last) end = (end + kLineBytes - 1) / kLineBytes * kLineBytes;  // the next begins there
    const double middle = static_cast<double>(panel) + static_cast<double>(count) / 2;
    blocks_.push_back({at, end - at, middle / static_cast<double>(matrix.panel_count())});
    at = end;
  }
  matrices_.push_back(std::move(matrix));
}

std::string MatrixPacking::key(const std::string& identity) const {
  std::string key = fmt::format("version {}, panels of {} outputs, floats {}\n{}", kPackedVersion,
                                kPanelOutputs, name_of(floats_), identity);
  // Hundreds of places: a disk that is asked for all of them at once answers far sooner.
  for (const SourceMatrix& source : sources_) {
    for (const auto part : source.rows.stored()) {
      for (const auto sample : samples_of(part)) read_ahead(sample);
    }
  }
  for (size_t i = 0; i < sources_.size(); ++i) {
    const SourceMatrix& source = sources_[i];
    key += fmt::format("{} {} of {}: rows {} + {}, {} columns, sample {:016x}\n", offsets_[i],
                       encoding_text(source.rows), source.tensor, source.first_row,
                       source.rows.rows(), source.rows.columns(), sample_checksum(source.rows));
  }
  return key;
}

Status MatrixPacking::pack(size_t block, std::byte* out) const {
  const Part& part = parts_[block];
  const SourceMatrix& source = sources_[part.matrix];
  const PackedLinear& matrix = matrices_[part.matrix];
  const int64_t first_row = part.first_panel * kPanelOutputs;
  const int64_t row_count =
      std::min(part.panel_count * kPanelOutputs, source.rows.rows() - first_row);
  for (const auto stored : source.rows.row_range(first_row, row_count).stored()) map_pages(stored);
  const Status status = matrix.pack_panels(source.rows, part.first_panel, part.panel_count, out);
  if (!status.ok()) return status.error().with_context(source.tensor);
  const int64_t packed_bytes = part.panel_count * matrix.layout().panel_bytes;
  std::memset(out + packed_bytes, 0, static_cast<size_t>(blocks_[block].byte_count - packed_bytes));
  return Ok{};
}

PackedContent MatrixPacking::content(const std::string& identity) const {
  return {.key = key(identity), .blocks = blocks_, .pack = [this](size_t block, std::byte* out) {
            return pack(block, out);
          }};
}

std::vector<PackedLinear> MatrixPacking::matrices(const std::byte* payload) && {
  for (size_t i = 0; i < matrices_.size(); ++i) matrices_[i].set_panels(payload + offsets_[i]);
  return std::move(matrices_);
}

}  // namespace espalier::units::cpu
