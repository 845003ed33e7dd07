// Reading the layouts of linear_layout.h inside kernels: one row of activations, one panel of
// weights. Included by files with ISA flags, so everything here has internal linkage (an unnamed
// namespace).
#pragma once

#include <cstring>
#include <type_traits>

#include "espalier/units/cpu/linear_layout.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::units::cpu {
namespace {

// The record of one row.
struct ActivationRow {
  const std::byte* values;
  const float* scales;        // [blocks]
  const int32_t* block_sums;  // [blocks] sum of the integers
  const int32_t* sums32;
  const int32_t* sums16;
};

ActivationRow activation_row(const ActivationLayout& layout, int64_t row) {
  const std::byte* record = layout.records + row * layout.record_bytes;
  return {record, reinterpret_cast<const float*>(record + layout.scales_at),
          reinterpret_cast<const int32_t*>(record + layout.block_sums_at),
          reinterpret_cast<const int32_t*>(record + layout.sums32_at),
          reinterpret_cast<const int32_t*>(record + layout.sums16_at)};
}

// A form of grouped weights as compile-time numbers; layout: linear_layout.h.
template <bool kNibblesOf, int64_t kElementsOf, bool kOffsetsOf>
struct GroupForm {
  static constexpr bool kNibbles = kNibblesOf;
  static constexpr int64_t kElements = kElementsOf;  // k of a group: 16, 32, 64 or 128
  static constexpr bool kOffsets = kOffsetsOf;
  // As much of a group as kernels unroll. A loop over chunks moves all sums at its ends, so that a group of 64 has none
  // (g++ 12, AVX-512 VNNI, 64 rows: 13 % of the time).
  static constexpr int64_t kChunk = kElements < 64 ? kElements : 64;
  static constexpr int64_t kChunks = kElements / kChunk;
  // What was added to q to make it unsigned: with an offset nothing, as the offset holds it.
  static constexpr int32_t kZeroPoint = kOffsets ? 0 : kNibbles ? 8 : 128;
  static constexpr int64_t kChunkBytes = kChunk * kPanelOutputs / (kNibbles ? 2 : 1);
  static constexpr int64_t kQuantBytes = kChunks * kChunkBytes;
};

template <class Form>
int64_t scales_bytes(const LinearLayout& layout) {
  return kPanelOutputs * (layout.scales == ScaleForm::kFloat32 ? 4 : 2);
}

template <class Form>
int64_t group_bytes(const LinearLayout& layout) {
  return Form::kQuantBytes + scales_bytes<Form>(layout) * (Form::kOffsets ? 2 : 1);
}

// Nibbles of a chunk as bytes: of every line the step in the low halves, then that in the high ones.
template <class Form>
void unpack_nibbles(const std::byte* quants, std::byte* bytes) {
  constexpr int64_t kLineBytes = kPanelOutputs * kStepElements;
  for (int64_t at = 0; at < Form::kChunkBytes; at += kLineBytes, bytes += 2 * kLineBytes) {
    std::byte line[kLineBytes];  // a copy, so that the loops may run side by side
    std::memcpy(line, quants + at, sizeof(line));
    for (int64_t i = 0; i < kLineBytes; ++i) bytes[i] = line[i] & std::byte{0xf};
    for (int64_t i = 0; i < kLineBytes; ++i) bytes[kLineBytes + i] = line[i] >> 4;
  }
}

// Of `kCount` panels of a group: the 16 scales at at[i], and the 16 offsets behind them where the form has them. One branch
// for all of them.
template <class Form, class V, int kCount>
[[gnu::always_inline]] inline void load_scales(ScaleForm form, const std::byte* const (&at)[kCount],
                                               V (&scales)[kCount], V (&offsets)[kCount]) {
  const auto load_all = [&](auto load, int64_t bytes) ESPALIER_INLINE {
    unrolled<kCount>([&](auto i) ESPALIER_INLINE {
      scales[i] = load(at[i]);
      if constexpr (Form::kOffsets) offsets[i] = load(at[i] + bytes);
    });
  };
  const auto narrow = [](const std::byte* p) { return reinterpret_cast<const uint16_t*>(p); };
  if (form == ScaleForm::kFloat16) [[likely]] {
    load_all([&](const std::byte* p) ESPALIER_INLINE { return V::load_half(narrow(p)); }, 32);
  } else if (form == ScaleForm::kFloat32) {
    load_all([](const std::byte* p)
                 ESPALIER_INLINE { return V::load(reinterpret_cast<const float*>(p)); },
             64);
  } else {
    load_all([&](const std::byte* p) ESPALIER_INLINE { return V::load_bfloat16(narrow(p)); }, 32);
  }
}

// The sum of the activations of group `group`.
template <class Form>
int32_t group_sum(const ActivationRow& row, int64_t group) {
  if constexpr (Form::kElements == 16) return row.sums16[group];
  if constexpr (Form::kElements == 32) return row.sums32[group];
  const int32_t* parts = row.sums32 + Form::kElements / 32 * group;
  if constexpr (Form::kElements == 64) return parts[0] + parts[1];
  return parts[0] + parts[1] + parts[2] + parts[3];
}

// int8 with a scale per output.
struct ChannelForm {};

// Calls function(Form()), Form being ChannelForm or a GroupForm: what `layout` holds, floats excepted.
template <class Function>
void with_integer_form(const LinearLayout& layout, Function function) {
  const bool offsets = layout.has_offsets;
  switch (layout.form) {
    case WeightForm::kNibbles:  // without offsets only groups of 32
      if (layout.group_elements == 128) return function(GroupForm<true, 128, true>());
      if (layout.group_elements == 64) return function(GroupForm<true, 64, true>());
      return offsets ? function(GroupForm<true, 32, true>())
                     : function(GroupForm<true, 32, false>());
    case WeightForm::kBytes:  // without offsets no groups of 128
      if (layout.group_elements == 128) return function(GroupForm<false, 128, true>());
      if (layout.group_elements == 64) {
        return offsets ? function(GroupForm<false, 64, true>())
                       : function(GroupForm<false, 64, false>());
      }
      if (layout.group_elements == 32) {
        return offsets ? function(GroupForm<false, 32, true>())
                       : function(GroupForm<false, 32, false>());
      }
      return offsets ? function(GroupForm<false, 16, true>())
                     : function(GroupForm<false, 16, false>());
    default:
      return function(ChannelForm());
  }
}

// The outputs of panel `panel` that exist: 16, or fewer in the last one.
int64_t panel_outputs(const LinearLayout& layout, int64_t panel) {
  const int64_t left = layout.rows - panel * kPanelOutputs;
  return left < kPanelOutputs ? left : kPanelOutputs;
}

// The distance at which a stream is asked for. Zen 5, two cores, int8, fractions of the floor at 4, 6 and 8 rows: 90, 80
// and 65 % with 2 KB, 92, 88 and 80 with 4, 94, 90 and 83 with 6, 90, 86 and 80 with 8; two panels at once 87, 80 and 70.
constexpr int64_t kAheadBytes = 6144;

// What a tile of rows asks for while it computes, as many lines in every 32 k, because bursts cost more than they bring.
struct NextPanels {
  static constexpr int64_t kElements = 32;  // k between two portions; K is a multiple
  const std::byte* at = nullptr;
  int64_t lines = 0;  // of a portion
  bool soon = false;  // into the first cache

  NextPanels() = default;  // nothing
  // A panel whose rows are one tile, which is read once: the bytes that come kAheadBytes later.
  NextPanels(const LinearLayout& weights, int64_t panel) : NextPanels(weights, panel, 1, 0, 1) {
    at += kAheadBytes;
    soon = true;
  }
  // Share `tile` of `tiles` of the panels [first, first + count), which would otherwise keep the first tile waiting.
  NextPanels(const LinearLayout& weights, int64_t first, int64_t count, int64_t tile,
             int64_t tiles) {
    const int64_t portions = weights.padded_columns / kElements;  // of a tile
    lines = (count * weights.panel_bytes / kLineBytes + tiles * portions - 1) / (tiles * portions);
    at = weights.panels + first * weights.panel_bytes + tile * portions * lines * kLineBytes;
  }
  [[gnu::always_inline]] inline void ask() {
    if (soon) {
      for (int64_t i = 0; i < lines; ++i, at += kLineBytes) __builtin_prefetch(at);
    } else {
      for (int64_t i = 0; i < lines; ++i, at += kLineBytes) __builtin_prefetch(at, 0, 2);
    }
  }

 private:
  static constexpr int64_t kLineBytes = 64;
};

// The portions of chunk `chunk`: one for every 32 k.
template <class Form>
[[gnu::always_inline]] inline void ask_for_chunk(int64_t chunk, NextPanels& next) {
  if (Form::kChunk >= NextPanels::kElements || chunk % 2 == 0) next.ask();
  if constexpr (Form::kChunk > NextPanels::kElements) next.ask();
}

}  // namespace
}  // namespace espalier::units::cpu
