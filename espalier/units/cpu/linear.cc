#include "espalier/units/cpu/linear.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "espalier/base/check.h"
#include "espalier/units/cpu/panel_layout.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kHugePageBytes = int64_t{2} << 20;

}  // namespace

void AlignedBytes::Free::operator()(std::byte* bytes) const { std::free(bytes); }

Result<AlignedBytes> AlignedBytes::allocate_unfilled(int64_t size) {
  CHECK_GE(size, 0);
  const bool huge = size >= 4 * kHugePageBytes;
  const int64_t alignment = huge ? kHugePageBytes : kLineBytes;
  AlignedBytes result;
  if (size <= std::numeric_limits<int64_t>::max() / 2) {
    const auto rounded = static_cast<size_t>(round_up(size, alignment));
    result.data_.reset(
        static_cast<std::byte*>(std::aligned_alloc(static_cast<size_t>(alignment), rounded)));
  }
  if (result.data_ == nullptr) {
    return Error{.what = "not enough memory",
                 .expected = fmt::format("{} bytes", size),
                 .actual = {},
                 .fix = "Use a smaller model or free some memory."};
  }
#ifdef MADV_HUGEPAGE
  // Fewer TLB misses while streaming weights; only whole pages of our own, so nothing is wasted.
  if (huge)
    madvise(result.data_.get(), static_cast<size_t>(size / kHugePageBytes * kHugePageBytes),
            MADV_HUGEPAGE);
#endif
  result.size_ = size;
  return result;
}

Result<AlignedBytes> AlignedBytes::allocate(int64_t size) {
  ASSIGN_OR_RETURN(AlignedBytes result, allocate_unfilled(size));
  std::memset(result.data(), 0, static_cast<size_t>(size));
  return result;
}

const LinearLayout& PackedLinear::layout() const { return layout_; }

PackedLinear PackedLinear::over(const LinearLayout& layout) {
  PackedLinear packed;
  packed.layout_ = layout;
  return packed;
}

LinearArithmetic PackedLinear::arithmetic() const {
  switch (layout_.form) {
    case WeightForm::kInt8Channel:
      return LinearArithmetic::kInt8Channel;
    case WeightForm::kNibbles:
    case WeightForm::kBytes:
      return LinearArithmetic::kGroups;
    case WeightForm::kFloat32:
    case WeightForm::kFloat16:
    case WeightForm::kBFloat16:
      break;
  }
  return LinearArithmetic::kFloat;
}

int PackedLinear::activation_planes(int requested) const {
  return arithmetic() == LinearArithmetic::kFloat ? 0 : requested;
}

const ActivationLayout& Activations::layout() const { return layout_; }

Result<Activations> Activations::create(int64_t max_rows, int64_t columns, int planes) {
  CHECK(max_rows > 0 && columns > 0 && planes >= 0 && planes <= 2);
  Activations result;
  result.max_rows_ = max_rows;
  ActivationLayout& layout = result.layout_;
  layout.columns = columns;
  layout.padded_columns = round_up(columns, kColumnAlignment);
  layout.planes = planes;
  const int64_t blocks = (columns + kBlockElements - 1) / kBlockElements;
  const int64_t numbers = 2 * blocks + layout.padded_columns / 32 + layout.padded_columns / 16;
  const int64_t numbers_bytes = numbers * int64_t{sizeof(int32_t)};
  // Values of two bytes serve int16 and two planes alike. An odd number of lines, so that the same
  // k of several rows falls into different cache sets.
  const int64_t value_bytes = planes == 0 ? 2 * columns : layout.padded_columns;
  layout.plane_bytes =
      (round_up(value_bytes + numbers_bytes, kLineBytes) / kLineBytes | 1) * kLineBytes;
  layout.record_bytes = 2 * layout.plane_bytes;
  layout.scales_at = layout.record_bytes - numbers_bytes;
  layout.block_sums_at = layout.scales_at + blocks * int64_t{sizeof(float)};
  layout.sums32_at = layout.block_sums_at + blocks * int64_t{sizeof(int32_t)};
  layout.sums16_at = layout.sums32_at + layout.padded_columns / 32 * int64_t{sizeof(int32_t)};
  const int64_t records = round_up(max_rows, kTileRows);  // tiles read whole, whoever wrote them
  ASSIGN_OR_RETURN(result.storage_, AlignedBytes::allocate(records * layout.record_bytes));
  layout.records = result.storage_.data();
  return result;
}

}  // namespace espalier::units::cpu
