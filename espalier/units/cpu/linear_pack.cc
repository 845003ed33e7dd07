// From stored weights to panels, and back to fp32. The only file that knows both sides.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "espalier/base/check.h"
#include "espalier/base/dequantize.h"
#include "espalier/units/cpu/linear.h"

namespace espalier::units::cpu {
namespace {

// What becomes of a block encoding: a row per encoding of base/dtype.h that has groups.
struct GroupRow {
  Encoding encoding;
  WeightForm form;
  bool has_offsets;
  bool wide_scales;
  int32_t zero_point;  // added to q to make it unsigned
};
constexpr std::array kGroupRows = {
    GroupRow{Encoding::kQ4_0, WeightForm::kNibbles32, false, false, 8},
    GroupRow{Encoding::kQ4_1, WeightForm::kNibbles32, true, false, 0},
    GroupRow{Encoding::kQ5_0, WeightForm::kBytes32, false, false, 128},
    GroupRow{Encoding::kQ5_1, WeightForm::kBytes32, true, false, 128},
    GroupRow{Encoding::kQ8_0, WeightForm::kBytes32, false, false, 128},
    GroupRow{Encoding::kIQ4_NL, WeightForm::kBytes32, false, false, 128},
    GroupRow{Encoding::kQ4_K, WeightForm::kNibbles32, true, true, 0},
    GroupRow{Encoding::kQ5_K, WeightForm::kBytes32, true, true, 128},
    GroupRow{Encoding::kQ2_K, WeightForm::kBytes16, true, true, 128},
    GroupRow{Encoding::kQ3_K, WeightForm::kBytes16, false, true, 128},
    GroupRow{Encoding::kQ6_K, WeightForm::kBytes16, false, true, 128},
};

const GroupRow* group_row(Encoding encoding) {
  const auto* row = std::find_if(kGroupRows.begin(), kGroupRows.end(),
                                 [&](const GroupRow& r) { return r.encoding == encoding; });
  return row == kGroupRows.end() ? nullptr : row;
}

bool is_plain_float(Encoding encoding) {
  switch (encoding) {
    case Encoding::kF64:
    case Encoding::kF32:
    case Encoding::kF16:
    case Encoding::kBF16:
    case Encoding::kF8E4M3:
    case Encoding::kF8E5M2:
      return true;
    default:
      return false;
  }
}

WeightForm float_form(Encoding encoding) {
  if (encoding == Encoding::kF16) return WeightForm::kFloat16;
  if (encoding == Encoding::kBF16) return WeightForm::kBFloat16;
  return WeightForm::kFloat32;
}

// Where the byte (or nibble) of element k of an output lies among the quants of a panel or group.
int64_t quant_index(int64_t k, int64_t output) {
  return (k / kStepElements * kPanelOutputs + output) * kStepElements + k % kStepElements;
}

// One group of one output inside a panel.
class GroupSlot {
 public:
  GroupSlot(const LinearLayout& layout, int64_t output, int64_t group) : layout_(layout) {
    lane_ = output % kPanelOutputs;
    quant_bytes_ = elements() * kPanelOutputs / (nibbles() ? 2 : 1);
    scale_bytes_ = layout.wide_scales ? 4 : 2;
    const int64_t record =
        quant_bytes_ + kPanelOutputs * scale_bytes_ * (layout.has_offsets ? 2 : 1);
    at_ = output / kPanelOutputs * layout.panel_bytes + group * record;
  }
  static int64_t record_bytes(const LinearLayout& layout) { return GroupSlot(layout, 0, 1).at_; }
  int64_t elements() const { return layout_.form == WeightForm::kBytes16 ? 16 : 32; }

  void write(const QuantizedGroup& group, int32_t zero_point, std::byte* panels) const {
    for (int64_t k = 0; k < elements(); ++k) {
      const auto unsigned_q = static_cast<uint8_t>(group.q[k] + zero_point);
      std::byte& place = panels[at_ + byte_index(k)];
      place = nibbles() ? place | static_cast<std::byte>(unsigned_q << shift(k))
                        : std::byte{unsigned_q};
    }
    write_scale(group.scale, 0, panels);
    if (layout_.has_offsets) write_scale(group.offset, 1, panels);
  }

  void read(int32_t zero_point, std::span<float> out) const {
    const float scale = read_scale(0), offset = layout_.has_offsets ? read_scale(1) : -0.0f;
    for (int64_t k = 0; k < static_cast<int64_t>(out.size()); ++k) {
      auto unsigned_q = std::to_integer<int32_t>(layout_.panels[at_ + byte_index(k)]);
      if (nibbles()) unsigned_q = unsigned_q >> shift(k) & 0xf;
      out[static_cast<size_t>(k)] = scale * static_cast<float>(unsigned_q - zero_point) + offset;
    }
  }

 private:
  bool nibbles() const { return layout_.form == WeightForm::kNibbles32; }
  // Nibbles: two steps share a line, the even one in the low halves.
  int64_t byte_index(int64_t k) const {
    if (!nibbles()) return quant_index(k, lane_);
    return quant_index(k / (2 * kStepElements) * kStepElements + k % kStepElements, lane_);
  }
  static int shift(int64_t k) { return k / kStepElements % 2 == 0 ? 0 : 4; }

  int64_t scale_at(int64_t which) const {
    return at_ + quant_bytes_ + (which * kPanelOutputs + lane_) * scale_bytes_;
  }
  void write_scale(float value, int64_t which, std::byte* panels) const {
    if (layout_.wide_scales) {
      std::memcpy(panels + scale_at(which), &value, sizeof(value));
      return;
    }
    const uint16_t half = float_to_half(value);
    CHECK(half_to_float(half) == value);  // these encodings store halves
    std::memcpy(panels + scale_at(which), &half, sizeof(half));
  }
  float read_scale(int64_t which) const {
    float value;
    uint16_t half;
    if (layout_.wide_scales) {
      std::memcpy(&value, layout_.panels + scale_at(which), sizeof(value));
      return value;
    }
    std::memcpy(&half, layout_.panels + scale_at(which), sizeof(half));
    return half_to_float(half);
  }

  const LinearLayout& layout_;
  int64_t lane_, quant_bytes_, scale_bytes_, at_;
};

Error not_finite(Encoding encoding, int64_t row) {
  return not_finite_error(fmt::format("row {} of a {} weight", row, name_of(encoding)));
}

Status pack_groups(const TensorView& tensor, int64_t first_row, const LinearLayout& layout,
                   std::byte* panels) {
  const GroupRow& form = *group_row(tensor.encoding);
  const int64_t groups = layout.columns / group_elements(tensor.encoding);
  QuantizedGroup group;
  for (int64_t output = 0; output < layout.rows; ++output) {
    const auto row = tensor.row(first_row + output);
    for (int64_t index = 0; index < groups; ++index) {
      decode_group(tensor.encoding, row, index, group);
      if (!std::isfinite(group.scale) || !std::isfinite(group.offset)) {
        return not_finite(tensor.encoding, first_row + output);
      }
      GroupSlot(layout, output, index).write(group, form.zero_point, panels);
    }
  }
  return Ok();
}

// Bytes that no weight fills (columns and outputs of the padding) must mean 0. Group forms are 0 by
// their zero scale, and have no padded columns.
void pack_int8_row(std::span<const float> values, float absmax, int64_t output,
                   const LinearLayout& layout, std::byte* panels) {
  const float scale = absmax / 127.0f;
  const int64_t lane = output % kPanelOutputs;
  std::byte* panel = panels + output / kPanelOutputs * layout.panel_bytes;
  for (int64_t k = 0; k < layout.columns; ++k) {
    // A denormal scale is so coarse that the quotient may exceed 127.
    const float quotient = scale == 0.0f ? 0.0f : values[static_cast<size_t>(k)] / scale;
    const float q = std::nearbyint(std::clamp(quotient, -127.0f, 127.0f));
    panel[quant_index(k, lane)] = static_cast<std::byte>(static_cast<int32_t>(q) + 128);
  }
  std::memcpy(panel + layout.padded_columns * kPanelOutputs + lane * int64_t{sizeof(float)}, &scale,
              sizeof(scale));
}

Status pack_int8(const TensorView& tensor, int64_t first_row, const LinearLayout& layout,
                 int64_t byte_count, std::byte* panels) {
  for (int64_t at = 0; at < byte_count; at += layout.panel_bytes) {
    std::memset(panels + at, 128, static_cast<size_t>(layout.padded_columns * kPanelOutputs));
  }
  std::vector<float> values(static_cast<size_t>(layout.columns));
  for (int64_t output = 0; output < layout.rows; ++output) {
    dequantize(tensor.encoding, tensor.row(first_row + output), values);
    float absmax = 0.0f;
    for (const float value : values) {
      if (!std::isfinite(value)) return not_finite(tensor.encoding, first_row + output);
      absmax = std::max(absmax, std::fabs(value));
    }
    pack_int8_row(values, absmax, output, layout, panels);
  }
  return Ok();
}

int64_t float_bytes(WeightForm form) { return form == WeightForm::kFloat32 ? 4 : 2; }

Status pack_floats(const TensorView& tensor, int64_t first_row, const LinearLayout& layout,
                   std::byte* panels) {
  const int64_t size = float_bytes(layout.form);
  std::vector<float> values(static_cast<size_t>(layout.columns));
  for (int64_t output = 0; output < layout.rows; ++output) {
    const auto row = tensor.row(first_row + output);
    dequantize(tensor.encoding, row, values);
    std::byte* panel = panels + output / kPanelOutputs * layout.panel_bytes;
    for (int64_t k = 0; k < layout.columns; ++k) {
      const float& value = values[static_cast<size_t>(k)];
      if (!std::isfinite(value)) return not_finite(tensor.encoding, first_row + output);
      // 16-bit floats stay as they are stored; everything else is computed as fp32.
      const std::byte* source =
          size == 2 ? row.data() + k * size : reinterpret_cast<const std::byte*>(&value);
      std::memcpy(panel + (k * kPanelOutputs + output % kPanelOutputs) * size, source,
                  static_cast<size_t>(size));
    }
  }
  return Ok();
}

// Form and sizes; `panels` is not set.
Result<LinearLayout> layout_for(const TensorView& tensor, int64_t row_count, bool keep_floats) {
  LinearLayout layout = {};
  layout.rows = row_count;
  layout.columns = tensor.columns();
  layout.padded_columns =
      (layout.columns + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
  if (const GroupRow* row = group_row(tensor.encoding); row != nullptr) {
    layout.padded_columns = layout.columns;
    layout.form = row->form;
    layout.has_offsets = row->has_offsets;
    layout.wide_scales = row->wide_scales;
    layout.panel_bytes =
        layout.columns / group_elements(tensor.encoding) * GroupSlot::record_bytes(layout);
    return layout;
  }
  if (!is_plain_float(tensor.encoding)) {
    return Error{.what = "a weight has an encoding that cannot be multiplied",
                 .expected = "a float type or a GGUF block encoding",
                 .actual = std::string(name_of(tensor.encoding)),
                 .fix = "Convert the checkpoint to bf16, f16 or f32."};
  }
  layout.form = keep_floats ? float_form(tensor.encoding) : WeightForm::kInt8Channel;
  layout.panel_bytes =
      keep_floats ? layout.columns * kPanelOutputs * float_bytes(layout.form)
                  : layout.padded_columns * kPanelOutputs + kPanelOutputs * int64_t{sizeof(float)};
  return layout;
}

}  // namespace

Result<PackedLinear> PackedLinear::pack(const TensorView& tensor, int64_t first_row,
                                        int64_t row_count, bool keep_floats) {
  CHECK(first_row >= 0 && row_count >= 0 && first_row <= tensor.rows() - row_count);
  PackedLinear packed;
  packed.encoding_ = tensor.encoding;
  ASSIGN_OR_RETURN(packed.layout_, layout_for(tensor, row_count, keep_floats));
  LinearLayout& layout = packed.layout_;
  ASSIGN_OR_RETURN(packed.storage_,
                   AlignedBytes::allocate(packed.panel_count() * layout.panel_bytes));
  std::byte* panels = packed.storage_.data();
  layout.panels = panels;
  Status status = Ok();
  switch (packed.arithmetic()) {
    case LinearArithmetic::kGroups:
      status = pack_groups(tensor, first_row, layout, panels);
      break;
    case LinearArithmetic::kInt8Channel:
      status = pack_int8(tensor, first_row, layout, packed.byte_count(), panels);
      break;
    case LinearArithmetic::kFloat:
      status = pack_floats(tensor, first_row, layout, panels);
      break;
  }
  RETURN_IF_ERROR(status);
  return packed;
}

void PackedLinear::read_rows(int64_t first_row, int64_t row_count, std::span<float> out) const {
  CHECK(first_row >= 0 && row_count >= 0 && first_row <= rows() - row_count);
  CHECK_EQ(static_cast<int64_t>(out.size()), row_count * columns());
  for (int64_t r = 0; r < row_count; ++r) {
    const auto row =
        out.subspan(static_cast<size_t>(r * columns()), static_cast<size_t>(columns()));
    switch (arithmetic()) {
      case LinearArithmetic::kGroups:
        read_group_row(first_row + r, row);
        break;
      case LinearArithmetic::kInt8Channel:
        read_int8_row(first_row + r, row);
        break;
      case LinearArithmetic::kFloat:
        read_float_row(first_row + r, row);
        break;
    }
  }
}

void PackedLinear::read_group_row(int64_t row, std::span<float> out) const {
  const int64_t elements = group_elements(encoding_);
  for (int64_t k = 0; k < columns(); k += elements) {
    GroupSlot(layout_, row, k / elements)
        .read(group_row(encoding_)->zero_point,
              out.subspan(static_cast<size_t>(k), static_cast<size_t>(elements)));
  }
}

void PackedLinear::read_int8_row(int64_t row, std::span<float> out) const {
  const int64_t lane = row % kPanelOutputs;
  const std::byte* panel = layout_.panels + row / kPanelOutputs * layout_.panel_bytes;
  float scale;
  std::memcpy(&scale,
              panel + layout_.padded_columns * kPanelOutputs + lane * int64_t{sizeof(float)},
              sizeof(scale));
  for (int64_t k = 0; k < columns(); ++k) {
    const int32_t q = std::to_integer<int32_t>(panel[quant_index(k, lane)]) - 128;
    out[static_cast<size_t>(k)] = scale * static_cast<float>(q);
  }
}

void PackedLinear::read_float_row(int64_t row, std::span<float> out) const {
  const int64_t size = float_bytes(layout_.form);
  const std::byte* panel = layout_.panels + row / kPanelOutputs * layout_.panel_bytes;
  for (int64_t k = 0; k < columns(); ++k) {
    const std::byte* value = panel + (k * kPanelOutputs + row % kPanelOutputs) * size;
    const Encoding stored = size == 2 ? encoding_ : Encoding::kF32;
    dequantize(stored, {value, static_cast<size_t>(size)}, out.subspan(static_cast<size_t>(k), 1));
  }
}

}  // namespace espalier::units::cpu
