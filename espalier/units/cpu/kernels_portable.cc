// The portable kernel set: plain loops that define the arithmetic of the cpu unit (linear.h,
// row_kernels.h).
#include "espalier/base/vec16.h"
#include "espalier/units/cpu/kernel_set_of.h"

namespace espalier::units::cpu {
namespace {

// q of a chunk of a group (or of `elements` k of an int8 panel) as int32 [elements][16]: steps of 4 k
// undone.
void unpack_steps(const std::byte* u, int64_t elements, int32_t zero_point, int32_t* q) {
  for (int64_t step = 0; step < elements / kStepElements; ++step) {
    for (int64_t output = 0; output < kPanelOutputs; ++output) {
      for (int64_t i = 0; i < kStepElements; ++i) {
        q[(step * kStepElements + i) * kPanelOutputs + output] =
            std::to_integer<int32_t>(u[(step * kPanelOutputs + output) * kStepElements + i]) -
            zero_point;
      }
    }
  }
}

template <class Form>
void unpack_chunk(const std::byte* quants, int32_t* q) {
  if constexpr (Form::kNibbles) {
    std::byte bytes[Form::kChunk * kPanelOutputs];
    unpack_nibbles<Form>(quants, bytes);
    unpack_steps(bytes, Form::kChunk, Form::kZeroPoint, q);
  } else {
    unpack_steps(quants, Form::kChunk, Form::kZeroPoint, q);
  }
}

// sums[o] += sum over `elements` of q[k][o] * a[k].
void add_dot_products(const int32_t* q, const int16_t* a, int64_t elements, int32_t* sums) {
  for (int64_t k = 0; k < elements; ++k) {
    for (int64_t output = 0; output < kPanelOutputs; ++output) {
      sums[output] += q[k * kPanelOutputs + output] * a[k];
    }
  }
}

Vec16 to_float(const int32_t* sums) {
  Vec16 result;
  for (int64_t i = 0; i < kPanelOutputs; ++i) result.lane[i] = static_cast<float>(sums[i]);
  return result;
}

Vec16 int8_panel(const LinearLayout& weights, const std::byte* panel, const ActivationRow& row) {
  const auto* a = reinterpret_cast<const int16_t*>(row.values);
  Vec16 y = Vec16::zero();
  for (int64_t first = 0; first < weights.padded_columns; first += kBlockElements) {
    const int64_t last = std::min(first + kBlockElements, weights.padded_columns);
    int32_t sums[kPanelOutputs] = {};
    for (int64_t k = first; k < last; k += kStepElements) {
      int32_t q[kStepElements * kPanelOutputs];
      unpack_steps(panel + k * kPanelOutputs, kStepElements, 128, q);
      add_dot_products(q, a + k, kStepElements, sums);
    }
    y = fma(to_float(sums), Vec16::broadcast(row.scales[first / kBlockElements]), y);
  }
  return y * Vec16::load(
                 reinterpret_cast<const float*>(panel + weights.padded_columns * kPanelOutputs));
}

template <class Form>
Vec16 group_panel(const LinearLayout& weights, const std::byte* panel, const ActivationRow& row) {
  const auto* a = reinterpret_cast<const int16_t*>(row.values);
  Vec16 y = Vec16::zero();
  for (int64_t first = 0; first < weights.padded_columns; first += kBlockElements) {
    const int64_t last = std::min(first + kBlockElements, weights.padded_columns);
    Vec16 block = Vec16::zero();
    for (int64_t k = first; k < last; panel += scales_bytes<Form>(weights)) {
      const int64_t group = k / Form::kElements;
      int32_t sums[kPanelOutputs] = {};
      for (int64_t chunk = 0; chunk < Form::kChunks;
           ++chunk, k += Form::kChunk, panel += Form::kChunkBytes) {
        int32_t q[Form::kChunk * kPanelOutputs];
        unpack_chunk<Form>(panel, q);
        add_dot_products(q, a + k, Form::kChunk, sums);
      }
      const std::byte* const at[1] = {panel};
      Vec16 scale[1], offset[1];
      load_scales<Form>(weights.scales, at, scale, offset);
      block = fma(scale[0], to_float(sums), block);
      if constexpr (Form::kOffsets) {
        const auto sum = static_cast<float>(group_sum<Form>(row, group));
        block = fma(offset[0], Vec16::broadcast(sum), block);
        panel += scales_bytes<Form>(weights);
      }
    }
    y = fma(block, Vec16::broadcast(row.scales[first / kBlockElements]), y);
  }
  return y;
}

template <class Form>
Vec16 panel_of(const LinearLayout& weights, const std::byte* panel, const ActivationRow& row) {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    return int8_panel(weights, panel, row);
  } else {
    return group_panel<Form>(weights, panel, row);
  }
}

void linear_integers(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                     int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  with_integer_form(weights, [&]<class Form>(Form) {
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      for (int64_t row = 0; row < row_count; ++row) {
        panel_of<Form>(weights, weights.panels + panel * weights.panel_bytes,
                       activation_row(x, row))
            .store_partial(y + row * y_stride + panel * kPanelOutputs,
                           panel_outputs(weights, panel));
      }
    }
  });
}

bool always() { return true; }

}  // namespace

constinit const KernelSet kPortableKernels =
    kernel_set_of<Vec16, StoreInt16, linear_integers>("portable", always);

}  // namespace espalier::units::cpu
