#include "espalier/base/weights.h"

#include <algorithm>
#include <cmath>

#include "espalier/base/mapped_file.h"

namespace espalier {
namespace {

// Longest common prefix and suffix: cheap, and good enough to point at a renamed layer or a dropped
// prefix.
size_t likeness(const std::string& a, const std::string& b) {
  const auto prefix = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const auto suffix = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin();
  return static_cast<size_t>(prefix + suffix);
}

}  // namespace

Error not_finite_error(const std::string& what) {
  return Error{
      .what = what + " is not finite",
      .expected = "finite numbers",
      .actual = "infinity or NaN",
      .fix = "The file is damaged or was converted wrongly; convert or download it again."};
}

Status check_finite(const std::string& what, std::span<const float> values) {
  const bool finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  return finite ? Status(Ok{}) : not_finite_error(what);
}

int64_t TensorView::element_count() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t TensorView::rows() const {
  int64_t count = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) count *= shape[i];
  return count;
}

int64_t TensorView::row_bytes() const {
  const auto& info = encoding_info(encoding);
  return columns() / info.block_elements * info.block_bytes;
}

std::span<const std::byte> TensorView::row(int64_t index) const {
  const auto size = static_cast<size_t>(row_bytes());
  return bytes.subspan(static_cast<size_t>(index) * size, size);
}

TensorView TensorView::row_range(int64_t first, int64_t count) const {
  const auto of_rows = [&](std::span<const std::byte> all, int64_t bytes_of_row) {
    return all.subspan(static_cast<size_t>(first * bytes_of_row),
                       static_cast<size_t>(count * bytes_of_row));
  };
  TensorView range = *this;
  range.shape = {count, columns()};
  range.bytes = of_rows(bytes, row_bytes());
  if (!beside.scales.empty()) {
    const int64_t scale_bytes = columns() / encoding_info(encoding).block_elements *
                                encoding_info(beside.encoding).block_bytes;
    range.beside.scales = of_rows(beside.scales, scale_bytes);
    range.beside.offsets = of_rows(beside.offsets, scale_bytes);
  }
  return range;
}

std::array<std::span<const std::byte>, 3> TensorView::stored() const {
  return {bytes, beside.scales, beside.offsets};
}

int64_t TensorView::byte_count() const {
  return static_cast<int64_t>(bytes.size() + beside.scales.size() + beside.offsets.size());
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Weights Weights::of_files(std::map<std::string, TensorView> tensors,
                          const std::vector<std::shared_ptr<const MappedFile>>& files) {
  Weights weights(std::move(tensors), {files.begin(), files.end()});
  for (const auto& file : files) weights.identity_ += file->identity() + "\n";
  return weights;
}

Result<TensorView> Weights::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  const auto nearest = std::max_element(tensors_.begin(), tensors_.end(), [&](auto& a, auto& b) {
    return likeness(a.first, name) < likeness(b.first, name);
  });
  return Error{
      .what = fmt::format("tensor '{}' is missing", name),
      .expected = {},
      .actual = nearest == tensors_.end()
                    ? std::string("a checkpoint without tensors")
                    : fmt::format("a checkpoint whose nearest name is '{}'", nearest->first),
      .fix = "Check that all files of the checkpoint are there and belong together."};
}

Result<TensorView> Weights::get(const std::string& name,
                                std::span<const int64_t> expected_shape) const {
  ASSIGN_OR_RETURN(TensorView view, get(name));
  if (std::equal(view.shape.begin(), view.shape.end(), expected_shape.begin(),
                 expected_shape.end())) {
    return view;
  }
  return Error{.what = fmt::format("tensor '{}' has the wrong shape", name),
               .expected = shape_text(expected_shape),
               .actual = shape_text(view.shape),
               .fix = "The configuration and the weights do not belong together."};
}

}  // namespace espalier
