// From stored weights to panels, and back to fp32. The only file that knows both sides.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "espalier/base/check.h"
#include "espalier/base/dequantize.h"
#include "espalier/units/cpu/linear.h"
#include "espalier/units/cpu/panel_layout.h"

namespace espalier::units::cpu {
namespace {

// What becomes of a block encoding: a row per encoding of base/dtype.h that has groups.
struct GroupRow {
  Encoding encoding;
  WeightForm form;
  bool has_offsets;
  ScaleForm scales = ScaleForm::kFloat32;  // where they lie beside, as they lie there
};
constexpr std::array kGroupRows = {
    GroupRow{Encoding::kQ4_0, WeightForm::kNibbles, false, ScaleForm::kFloat16},
    GroupRow{Encoding::kQ4_1, WeightForm::kNibbles, true, ScaleForm::kFloat16},
    GroupRow{Encoding::kQ5_0, WeightForm::kBytes, false, ScaleForm::kFloat16},
    GroupRow{Encoding::kQ5_1, WeightForm::kBytes, true, ScaleForm::kFloat16},
    GroupRow{Encoding::kQ8_0, WeightForm::kBytes, false, ScaleForm::kFloat16},
    GroupRow{Encoding::kIQ4_NL, WeightForm::kBytes, false, ScaleForm::kFloat16},
    GroupRow{Encoding::kQ4_K, WeightForm::kNibbles, true},
    GroupRow{Encoding::kQ5_K, WeightForm::kBytes, true},
    GroupRow{Encoding::kQ2_K, WeightForm::kBytes, true},
    GroupRow{Encoding::kQ3_K, WeightForm::kBytes, false},
    GroupRow{Encoding::kQ6_K, WeightForm::kBytes, false},
    GroupRow{Encoding::kAffine4G32, WeightForm::kNibbles, true},
    GroupRow{Encoding::kAffine4G64, WeightForm::kNibbles, true},
    GroupRow{Encoding::kAffine4G128, WeightForm::kNibbles, true},
    GroupRow{Encoding::kAffine8G32, WeightForm::kBytes, true},
    GroupRow{Encoding::kAffine8G64, WeightForm::kBytes, true},
    GroupRow{Encoding::kAffine8G128, WeightForm::kBytes, true},
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

ScaleForm scale_form(Encoding encoding) {
  if (encoding == Encoding::kF16) return ScaleForm::kFloat16;
  if (encoding == Encoding::kBF16) return ScaleForm::kBFloat16;
  return ScaleForm::kFloat32;
}

WeightForm float_form(Encoding encoding) {
  if (encoding == Encoding::kF16) return WeightForm::kFloat16;
  if (encoding == Encoding::kBF16) return WeightForm::kBFloat16;
  return WeightForm::kFloat32;
}

// One group of one output inside a panel.
class GroupSlot {
 public:
  GroupSlot(const LinearLayout& layout, int64_t output, int64_t group) : layout_(layout) {
    lane_ = output % kPanelOutputs;
    quant_bytes_ = elements() * kPanelOutputs / (nibbles() ? 2 : 1);
    scale_bytes_ = layout.scales == ScaleForm::kFloat32 ? 4 : 2;
    const int64_t record =
        quant_bytes_ + kPanelOutputs * scale_bytes_ * (layout.has_offsets ? 2 : 1);
    at_ = output / kPanelOutputs * layout.panel_bytes + group * record;
  }
  static int64_t record_bytes(const LinearLayout& layout) { return GroupSlot(layout, 0, 1).at_; }
  int64_t elements() const { return layout_.group_elements; }

  // Whole steps at a time: they are the units that stay together.
  void write(const QuantizedGroup& group, std::byte* panel) const {
    uint8_t q[kMaxGroupElements];
    for (int64_t k = 0; k < elements(); ++k) q[k] = static_cast<uint8_t>(group.q[k] + zero_point());
    const int64_t stride = nibbles() ? 2 * kStepElements : kStepElements;
    for (int64_t k = 0; k < elements(); k += stride) {
      auto step = load_step(q + k);
      if (nibbles()) step |= load_step(q + k + kStepElements) << 4;
      std::memcpy(panel + at_ + byte_index(k), &step, sizeof(step));
    }
    write_scale(group.scale, 0, panel);
    if (layout_.has_offsets) write_scale(group.offset, 1, panel);
  }

  void read(std::span<float> out) const {
    const float scale = read_scale(0), offset = layout_.has_offsets ? read_scale(1) : -0.0f;
    for (int64_t k = 0; k < static_cast<int64_t>(out.size()); ++k) {
      auto unsigned_q = std::to_integer<int32_t>(layout_.panels[at_ + byte_index(k)]);
      if (nibbles()) unsigned_q = unsigned_q >> shift(k) & 0xf;
      out[static_cast<size_t>(k)] = scale * static_cast<float>(unsigned_q - zero_point()) + offset;
    }
  }

 private:
  static uint32_t load_step(const uint8_t* q) {
    uint32_t step;
    std::memcpy(&step, q, sizeof(step));
    return step;
  }

  bool nibbles() const { return layout_.form == WeightForm::kNibbles; }
  // Added to q to make it unsigned: GroupForm::kZeroPoint.
  int32_t zero_point() const { return layout_.has_offsets ? 0 : nibbles() ? 8 : 128; }
  // Nibbles: two steps share a line, the even one in the low halves.
  int64_t byte_index(int64_t k) const {
    if (!nibbles()) return quant_index(k, lane_);
    return quant_index(k / (2 * kStepElements) * kStepElements + k % kStepElements, lane_);
  }
  static int shift(int64_t k) { return k / kStepElements % 2 == 0 ? 0 : 4; }

  int64_t scale_at(int64_t which) const {
    return at_ + quant_bytes_ + (which * kPanelOutputs + lane_) * scale_bytes_;
  }
  void write_scale(float value, int64_t which, std::byte* panel) const {
    if (layout_.scales == ScaleForm::kFloat32) {
      std::memcpy(panel + scale_at(which), &value, sizeof(value));
      return;
    }
    const bool is_half = layout_.scales == ScaleForm::kFloat16;
    const uint16_t narrow = is_half ? float_to_half(value) : float_to_bfloat16(value);
    CHECK(widened(narrow) == value);  // as the file has it
    std::memcpy(panel + scale_at(which), &narrow, sizeof(narrow));
  }
  float read_scale(int64_t which) const {
    float value;
    uint16_t narrow;
    if (layout_.scales == ScaleForm::kFloat32) {
      std::memcpy(&value, layout_.panels + scale_at(which), sizeof(value));
      return value;
    }
    std::memcpy(&narrow, layout_.panels + scale_at(which), sizeof(narrow));
    return widened(narrow);
  }
  float widened(uint16_t narrow) const {
    return layout_.scales == ScaleForm::kFloat16 ? half_to_float(narrow)
                                                 : bfloat16_to_float(narrow);
  }

  const LinearLayout& layout_;
  int64_t lane_, quant_bytes_, scale_bytes_, at_;
};

Error not_finite(Encoding encoding, int64_t row) {
  return not_finite_error(fmt::format("row {} of a {} weight", row, name_of(encoding)));
}

// Panels are packed one by one: all bytes of a panel are written, in the order in which they lie,
// from 16 rows at a time.
struct PanelRows {
  int64_t first = 0;  // in the tensor
  int64_t count = 0;  // at most kPanelOutputs
};

Status pack_group_panel(const TensorView& tensor, PanelRows rows, const LinearLayout& layout,
                        std::byte* panel) {
  // Groups of outputs that are not there are 0 by their zero scale.
  if (rows.count < kPanelOutputs) std::memset(panel, 0, static_cast<size_t>(layout.panel_bytes));
  const int64_t groups = layout.columns / layout.group_elements;
  QuantizedGroup group;
  for (int64_t index = 0; index < groups; ++index) {
    for (int64_t lane = 0; lane < rows.count; ++lane) {
      decode_group(tensor, rows.first + lane, index, group);
      if (!std::isfinite(group.scale) || !std::isfinite(group.offset)) {
        return not_finite(tensor.encoding, rows.first + lane);
      }
      GroupSlot(layout, lane, index).write(group, panel);
    }
  }
  return Ok();
}

// The largest absolute value; nothing where one is not finite. Over bits, because a maximum of
// floats forgets a NaN.
std::optional<float> finite_absmax(std::span<const float> values) {
  int32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<int32_t>(value) & 0x7fffffff);
  }
  const auto absmax = std::bit_cast<float>(largest);
  return std::isfinite(absmax) ? std::optional(absmax) : std::nullopt;
}

// Plain floats by groups of 64 k.
Status pack_float_groups(const TensorView& tensor, PanelRows rows, const LinearLayout& layout,
                         std::byte* panel) {
  if (rows.count < kPanelOutputs) std::memset(panel, 0, static_cast<size_t>(layout.panel_bytes));
  std::vector<float> values(static_cast<size_t>(layout.padded_columns));
  QuantizedGroup group;
  for (int64_t lane = 0; lane < rows.count; ++lane) {
    const auto row = std::span(values).first(static_cast<size_t>(layout.columns));
    dequantize(tensor.encoding, tensor.row(rows.first + lane), row);
    if (!finite_absmax(row)) return not_finite(tensor.encoding, rows.first + lane);
    for (int64_t index = 0; index * kFloatGroupElements < layout.padded_columns; ++index) {
      const auto floats = std::span(values).subspan(
          static_cast<size_t>(index * kFloatGroupElements), kFloatGroupElements);
      group.scale = *finite_absmax(floats) / 127.0f;
      for (size_t i = 0; i < floats.size(); ++i) group.q[i] = int8_of(floats[i], group.scale);
      GroupSlot(layout, lane, index).write(group, panel);
    }
  }
  return Ok();
}

// Columns and outputs of the padding mean 0.
Status pack_int8_panel(const TensorView& tensor, PanelRows rows, const LinearLayout& layout,
                       std::byte* panel) {
  const int64_t quant_bytes = layout.padded_columns * kPanelOutputs;
  std::memset(panel, 128, static_cast<size_t>(quant_bytes));
  std::memset(panel + quant_bytes, 0, static_cast<size_t>(layout.panel_bytes - quant_bytes));
  std::vector<float> values(static_cast<size_t>(layout.columns));
  std::vector<uint8_t> quants(static_cast<size_t>(layout.padded_columns), 128);
  for (int64_t lane = 0; lane < rows.count; ++lane) {
    dequantize(tensor.encoding, tensor.row(rows.first + lane), values);
    const std::optional<float> absmax = finite_absmax(values);
    if (!absmax) return not_finite(tensor.encoding, rows.first + lane);
    const float scale = *absmax / 127.0f;
    if (scale != 0.0f) {
      for (size_t k = 0; k < values.size(); ++k)
        quants[k] = static_cast<uint8_t>(int8_of(values[k], scale) + 128);
      for (int64_t k = 0; k < layout.padded_columns; k += kStepElements) {
        std::memcpy(panel + quant_index(k, lane), &quants[static_cast<size_t>(k)], kStepElements);
      }
    }
    std::memcpy(panel + int8_scale_at(layout.padded_columns, lane), &scale, sizeof(scale));
  }
  return Ok();
}

int64_t float_bytes(WeightForm form) { return form == WeightForm::kFloat32 ? 4 : 2; }

// 16-bit floats stay as they are stored; everything else is computed as fp32.
template <typename Stored>
void scatter_floats(const std::byte* values, int64_t columns, int64_t lane, std::byte* panel) {
  for (int64_t k = 0; k < columns; ++k) {
    std::memcpy(panel + (k * kPanelOutputs + lane) * int64_t{sizeof(Stored)},
                values + k * int64_t{sizeof(Stored)}, sizeof(Stored));
  }
}

Status pack_float_panel(const TensorView& tensor, PanelRows rows, const LinearLayout& layout,
                        std::byte* panel) {
  if (rows.count < kPanelOutputs) std::memset(panel, 0, static_cast<size_t>(layout.panel_bytes));
  std::vector<float> values(static_cast<size_t>(layout.columns));
  for (int64_t lane = 0; lane < rows.count; ++lane) {
    const auto row = tensor.row(rows.first + lane);
    dequantize(tensor.encoding, row, values);
    if (!finite_absmax(values)) return not_finite(tensor.encoding, rows.first + lane);
    if (layout.form == WeightForm::kFloat32) {
      scatter_floats<float>(std::as_bytes(std::span(values)).data(), layout.columns, lane, panel);
    } else {
      scatter_floats<uint16_t>(row.data(), layout.columns, lane, panel);
    }
  }
  return Ok();
}

// Form and sizes; `panels` is not set.
Result<LinearLayout> layout_for(const TensorView& tensor, int64_t row_count, FloatMode floats) {
  LinearLayout layout = {};
  layout.rows = row_count;
  layout.columns = tensor.columns();
  layout.padded_columns = round_up(layout.columns, kColumnAlignment);
  if (const GroupRow* row = group_row(tensor.encoding); row != nullptr) {
    layout.padded_columns = layout.columns;
    layout.form = row->form;
    layout.group_elements = group_elements(tensor.encoding);
    layout.has_offsets = row->has_offsets;
    layout.scales = encoding_info(tensor.encoding).scales_beside
                        ? scale_form(tensor.beside.encoding)
                        : row->scales;
    layout.panel_bytes = layout.columns / layout.group_elements * GroupSlot::record_bytes(layout);
    return layout;
  }
  if (!is_plain_float(tensor.encoding)) {
    return Error{.what = "a weight has an encoding that cannot be multiplied",
                 .expected = "a float type, a block encoding of GGUF or an affine one of MLX",
                 .actual = std::string(name_of(tensor.encoding)),
                 .fix = "Convert the checkpoint to bf16, f16 or f32."};
  }
  switch (floats) {
    case FloatMode::kKeep:
      layout.form = float_form(tensor.encoding);
      layout.panel_bytes = layout.columns * kPanelOutputs * float_bytes(layout.form);
      break;
    case FloatMode::kInt8Channel:
      layout.form = WeightForm::kInt8Channel;
      layout.panel_bytes = int8_panel_bytes(layout.padded_columns);
      break;
    case FloatMode::kInt8Groups:
      layout.form = WeightForm::kBytes;
      layout.group_elements = kFloatGroupElements;
      layout.panel_bytes =
          layout.padded_columns / kFloatGroupElements * GroupSlot::record_bytes(layout);
      break;
  }
  return layout;
}

}  // namespace

Result<PackedLinear> PackedLinear::plan(const TensorView& tensor, FloatMode floats) {
  PackedLinear packed;
  packed.encoding_ = tensor.encoding;
  ASSIGN_OR_RETURN(packed.layout_, layout_for(tensor, tensor.rows(), floats));
  return packed;
}

Status PackedLinear::pack_panels(const TensorView& tensor, int64_t first_panel, int64_t panel_count,
                                 std::byte* out) const {
  CHECK(first_panel >= 0 && panel_count >= 0 && first_panel <= this->panel_count() - panel_count);
  const auto pack_panel = [this] {
    switch (arithmetic()) {
      case LinearArithmetic::kGroups:
        return is_plain_float(encoding_) ? pack_float_groups : pack_group_panel;
      case LinearArithmetic::kInt8Channel:
        return pack_int8_panel;
      case LinearArithmetic::kFloat:
        break;
    }
    return pack_float_panel;
  }();
  for (int64_t panel = first_panel; panel < first_panel + panel_count; ++panel) {
    const int64_t first_row = panel * kPanelOutputs;
    const PanelRows rows = {first_row, std::min(kPanelOutputs, layout_.rows - first_row)};
    RETURN_IF_ERROR(pack_panel(tensor, rows, layout_, out));
    out += layout_.panel_bytes;
  }
  return Ok{};
}

Result<PackedLinear> PackedLinear::pack(const TensorView& tensor, int64_t first_row,
                                        int64_t row_count, FloatMode floats) {
  CHECK(first_row >= 0 && row_count >= 0 && first_row <= tensor.rows() - row_count);
  const TensorView part = tensor.row_range(first_row, row_count);
  ASSIGN_OR_RETURN(PackedLinear packed, plan(part, floats));
  ASSIGN_OR_RETURN(packed.storage_, AlignedBytes::allocate_unfilled(packed.byte_count()));
  std::byte* panels = packed.storage_.data();
  packed.set_panels(panels);
  RETURN_IF_ERROR(packed.pack_panels(part, 0, packed.panel_count(), panels));
  return packed;
}

std::string PackedLinear::description() const {
  std::string text(name_of(encoding_));
  if (arithmetic() == LinearArithmetic::kInt8Channel) return text + " as int8 per channel";
  if (arithmetic() == LinearArithmetic::kGroups && is_plain_float(encoding_))
    return text + " as int8 in groups of 64";
  return text;
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
  const int64_t elements = layout_.group_elements;
  for (int64_t k = 0; k < columns(); k += elements) {
    GroupSlot(layout_, row, k / elements)
        .read(out.subspan(static_cast<size_t>(k),
                          static_cast<size_t>(std::min(elements, columns() - k))));
  }
}

void PackedLinear::read_int8_row(int64_t row, std::span<float> out) const {
  const int64_t lane = row % kPanelOutputs;
  const std::byte* panel = layout_.panels + row / kPanelOutputs * layout_.panel_bytes;
  float scale;
  std::memcpy(&scale, panel + int8_scale_at(layout_.padded_columns, lane), sizeof(scale));
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
