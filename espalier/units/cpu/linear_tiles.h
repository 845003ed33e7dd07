// Integer products on a matrix-tile unit (AMX): signed activation planes times unsigned weight
// bytes. Semantics: linear.h. Tiles is the unit, V the vector of the fp32 work.
//
// Tiles 0..3 hold int32 sums [rows][16 outputs], 4 and 5 activations [rows][k], 6 and 7 weights
// [k / 4][16 outputs][4 k], a piece of a panel as it lies in memory. A row of an activation tile is
// one plane of one token, so tile_tokens tokens of two planes fill 16 rows: high, low, high, low.
//
// Order: pairs of panels, strips of at most eight tiles of tokens, K-blocks, tiles, k. A weight byte
// leaves DRAM once and a K-block of it stays in the first cache for the whole strip. The fp32 work on
// the sums of one step of that order is done while the unit computes the next.
#pragma once

#include <type_traits>

#include "espalier/units/cpu/linear_operands.h"
#include "espalier/units/cpu/unrolled.h"

namespace espalier::units::cpu {
namespace {

constexpr int64_t kTileSums = kTileRows * kPanelOutputs;
constexpr int64_t kStripTiles = 8;

// Tokens in tiles of one height. The last tile begins early enough to be whole: tokens that two
// tiles share are computed twice, to the same bits. A single tile may be higher than its tokens.
struct TokenTiles {
  int64_t tokens, count, height;

  // As even as they can be, at most `max_height`.
  static TokenTiles even(int64_t tokens, int64_t max_height) {
    const int64_t count = (tokens + max_height - 1) / max_height;
    return {tokens, count, (tokens + count - 1) / count};
  }
  static TokenTiles of_height(int64_t tokens, int64_t height) {
    return {tokens, (tokens + height - 1) / height, height};
  }
  int64_t first_token(int64_t tile) const {
    const int64_t first = tile * height;
    return first + height <= tokens || tile == 0 ? first : tokens - height;
  }
};

// The panels that come next, asked for in even portions while the present ones are computed, as
// eight streams in different pages: each wakes a prefetcher of its own.
class PanelPrefetch {
 public:
  PanelPrefetch() = default;  // nothing
  PanelPrefetch(const LinearLayout& weights, int64_t panel, int64_t last_panel, int64_t steps) {
    const int64_t panels = last_panel - panel < 2 ? last_panel - panel : 2;
    if (panels <= 0) return;
    at_ = weights.panels + panel * weights.panel_bytes;
    stream_bytes_ = (panels * weights.panel_bytes / kStreams + kLine - 1) / kLine * kLine;
    left_ = stream_bytes_ / kLine;
    portion_ = (left_ + steps - 1) / steps;
  }
  [[gnu::always_inline]] inline void step() {
    for (int64_t i = portion_ < left_ ? portion_ : left_; i > 0; --i, --left_, at_ += kLine) {
      const std::byte* line = at_;
      for (int stream = 0; stream < kStreams; ++stream, line += stream_bytes_)
        __builtin_prefetch(line, 0, 2);
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  static constexpr int kStreams = 8;
  const std::byte* at_ = nullptr;
  int64_t stream_bytes_ = 0, left_ = 0, portion_ = 0;
};

// What one product reads and writes.
struct Product {
  const LinearLayout& weights;
  const ActivationLayout& x;
  TokenTiles tiles;
  float* y;
  int64_t y_stride;

  int64_t plane_stride() const { return x.planes == 2 ? x.plane_bytes : x.record_bytes; }
  const std::byte* token(int64_t index) const { return x.records + index * x.record_bytes; }
  const std::byte* panel(int64_t index) const {
    return weights.panels + index * weights.panel_bytes;
  }
};

// function(panels, first tile, number of tiles, prefetch) for each pair of panels and each strip of
// tiles, in that order. A panel without a second is its own: computed twice, to the same bits.
// `prefetches` is how often function steps the prefetch for one pair.
template <class Function>
void for_each_strip(const Product& product, int64_t first_panel, int64_t last_panel,
                    int64_t prefetches, const Function& function) {
  for (int64_t panel = first_panel; panel < last_panel; panel += 2) {
    const int64_t end = panel + 2 < last_panel ? panel + 2 : last_panel;
    const int64_t panels[2] = {panel, end - 1};
    PanelPrefetch prefetch(product.weights, end, last_panel, prefetches);
    for (int64_t tile = 0; tile < product.tiles.count; tile += kStripTiles) {
      const int64_t left = product.tiles.count - tile;
      function(panels, tile, left < kStripTiles ? left : kStripTiles, prefetch);
    }
  }
}

// Sum of a token and a panel less `correction`, as fp32; `sums` is the row of the high plane.
template <class V, int kPlanes>
[[gnu::always_inline]] inline V token_sum(const int32_t* sums, int32_t correction) {
  if constexpr (kPlanes == 2) return V::from_planes(sums, sums + kPanelOutputs, correction);
  return V::from_integers(sums, correction);
}

// --- int8 per channel --------------------------------------------------------------------------

// One K-block of two panels and one or two tiles of tokens.
struct ChannelStep {
  int64_t first_token[2];
  int64_t tile_count;  // 0: nothing
  int64_t panels[2];
  int64_t block;
  bool last_block;
  float* totals;  // [2 tiles][16 tokens][2 panels][16] fp32
};

// The fp32 work on the sums of a step, token by token: total = sum * scale + total, and after the
// last block the output, which leaves the total 0 for the next panels.
template <class V, int kPlanes, bool kLastBlock>
class ChannelFinish {
 public:
  ChannelFinish(const Product& product, const ChannelStep& step, const int32_t* sums)
      : p_(product), step_(step), all_sums_(sums) {
    if (step.tile_count == 0) return;
    for (int panel = 0; panel < 2; ++panel) {
      const std::byte* scales =
          p_.panel(step.panels[panel]) + p_.weights.padded_columns * kPanelOutputs;
      weight_scales_[panel] = V::load(reinterpret_cast<const float*>(scales));
      outputs_[panel] = panel_outputs(p_.weights, step.panels[panel]);
    }
    begin_tile();
  }

  [[gnu::always_inline]] inline void tokens(int64_t count) {
    for (; count > 0; --count) {
      if (left_ == 0) {
        if (tile_ + 1 >= step_.tile_count) return;
        ++tile_;
        begin_tile();
      }
      token();
    }
  }
  void rest() { tokens(2 * p_.tiles.height); }

 private:
  void begin_tile() {
    const int64_t token = step_.first_token[tile_];
    left_ = p_.tiles.height;
    scale_ = p_.token(token) + p_.x.scales_at + step_.block * int64_t{sizeof(float)};
    sums_ = all_sums_ + 2 * tile_ * kTileSums;
    totals_ = step_.totals + tile_ * kTileRows * 2 * kPanelOutputs;
    y_ = p_.y + token * p_.y_stride;
  }

  [[gnu::always_inline]] inline void token() {
    const V scale = V::broadcast(*reinterpret_cast<const float*>(scale_));
    const auto block_sum =
        *reinterpret_cast<const uint32_t*>(scale_ + p_.x.block_sums_at - p_.x.scales_at);
    const auto correction = static_cast<int32_t>(block_sum * 128);
    unrolled<2>([&](auto panel) ESPALIER_INLINE {
      float* total = totals_ + panel * kPanelOutputs;
      const V sum = token_sum<V, kPlanes>(sums_ + panel * kTileSums, correction);
      const V after = fma(sum, scale, V::load(total));
      if constexpr (kLastBlock) {
        V::zero().store(total);
        const V output = after * weight_scales_[panel];
        float* y = y_ + step_.panels[panel] * kPanelOutputs;
        outputs_[panel] == kPanelOutputs ? output.store(y)
                                         : output.store_partial(y, outputs_[panel]);
      } else {
        after.store(total);
      }
    });
    --left_;
    scale_ += p_.x.record_bytes;
    sums_ += kPlanes * kPanelOutputs;
    totals_ += 2 * kPanelOutputs;
    y_ += p_.y_stride;
  }

  const Product& p_;
  const ChannelStep& step_;
  const int32_t* all_sums_;
  V weight_scales_[2];
  int64_t outputs_[2];
  // The next token.
  int64_t tile_ = 0, left_ = 0;
  const std::byte* scale_ = nullptr;
  const int32_t* sums_ = nullptr;
  float *totals_ = nullptr, *y_ = nullptr;
};

template <class Tiles, class V, int kPlanes>
class ChannelKernel {
 public:
  explicit ChannelKernel(const Product& product) : p_(product) {
    for (float& total : totals_) total = 0.0f;
  }

  void run(int64_t first_panel, int64_t last_panel) {
    const int64_t tile_pairs = (p_.tiles.count + 1) / 2;
    const int64_t prefetches = tile_pairs * p_.weights.padded_columns / kTileElements;
    Tiles::configure(static_cast<int>(p_.tiles.height * kPlanes), kTileElements);
    for_each_strip(
        p_, first_panel, last_panel, prefetches,
        [&](const int64_t* panels, int64_t strip, int64_t count, PanelPrefetch& prefetch) {
          for (int64_t block = 0; block * kBlockElements < p_.weights.padded_columns; ++block) {
            for (int64_t tile = 0; tile < count; tile += 2) {
              run_step(step(panels, block, strip + tile, tile + 1 < count ? 2 : 1, totals(tile)),
                       prefetch);
            }
          }
        });
    run_step({}, no_prefetch_);
    Tiles::release();
  }

 private:
  static constexpr int64_t kTileElements = 64;

  float* totals(int64_t tile) { return totals_ + tile * kTileRows * 2 * kPanelOutputs; }

  ChannelStep step(const int64_t* panels, int64_t block, int64_t tile, int64_t tile_count,
                   float* totals) const {
    return {
        .first_token = {p_.tiles.first_token(tile), p_.tiles.first_token(tile + tile_count - 1)},
        .tile_count = tile_count,
        .panels = {panels[0], panels[1]},
        .block = block,
        .last_block = (block + 1) * kBlockElements >= p_.weights.padded_columns,
        .totals = totals};
  }

  void run_step(const ChannelStep& step, PanelPrefetch& prefetch) {
    last_.last_block ? run_step<true>(step, prefetch) : run_step<false>(step, prefetch);
    last_ = step;
  }
  template <bool kLastBlock>
  void run_step(const ChannelStep& step, PanelPrefetch& prefetch) {
    ChannelFinish<V, kPlanes, kLastBlock> finish(p_, last_, sums_);
    if (step.tile_count == 2) {
      multiply<2>(step, finish, prefetch);
    } else if (step.tile_count == 1) {
      multiply<1>(step, finish, prefetch);
    } else {
      unrolled<4>([&](auto i) ESPALIER_INLINE { store<i>(); });
    }
    finish.rest();
  }

  // The sums of `step`, and meanwhile `finish` works on those of the step before.
  template <int kTiles, class Finish>
  [[gnu::always_inline]] inline void multiply(const ChannelStep& step, Finish& finish,
                                              PanelPrefetch& prefetch) {
    const int64_t first = step.block * kBlockElements;
    const int64_t end = first + kBlockElements;
    const int64_t last = end < p_.weights.padded_columns ? end : p_.weights.padded_columns;
    const int64_t steps = (last - first) / kTileElements;
    const int64_t portion = (last_.tile_count * p_.tiles.height + steps - 1) / steps;
    const int64_t stride = p_.plane_stride();
    const std::byte* a0 = p_.token(step.first_token[0]) + first;
    const std::byte* a1 = p_.token(step.first_token[1]) + first;
    const std::byte* w0 = p_.panel(step.panels[0]) + first * kPanelOutputs;
    const std::byte* w1 = p_.panel(step.panels[1]) + first * kPanelOutputs;
    for (int64_t k = 0; k < steps; ++k) {
      Tiles::template load<6>(w0, kRowBytes);
      Tiles::template load_streaming<4>(a0, stride);
      Tiles::template load<7>(w1, kRowBytes);
      if constexpr (kTiles == 2) Tiles::template load_streaming<5>(a1, stride);
      if (k == 0) {  // a tile is stored just before it is needed: then stores cost nothing
        unrolled<4>([&](auto i) ESPALIER_INLINE {
          store<i>();
          if constexpr (i < 2 * kTiles) Tiles::template zero<i>();
          if constexpr (i < 2 * kTiles) Tiles::template dot<i, 4 + i / 2, 6 + i % 2>();
        });
      } else {
        unrolled<2 * kTiles>(
            [&](auto i) ESPALIER_INLINE { Tiles::template dot<i, 4 + i / 2, 6 + i % 2>(); });
      }
      prefetch.step();
      finish.tokens(portion);
      a0 += kTileElements;
      a1 += kTileElements;
      w0 += kTileElements * kPanelOutputs;
      w1 += kTileElements * kPanelOutputs;
    }
  }

  template <int kTile>
  [[gnu::always_inline]] inline void store() {
    if (kTile < 2 * last_.tile_count) Tiles::template store<kTile>(sums_ + kTile * kTileSums);
  }

  static constexpr int64_t kRowBytes = kPanelOutputs * kStepElements;
  const Product& p_;
  PanelPrefetch no_prefetch_;
  ChannelStep last_ = {};  // computed, its sums still in the tiles
  alignas(64) int32_t sums_[4 * kTileSums];
  alignas(64) float totals_[kStripTiles * kTileRows * 2 * kPanelOutputs];
};

// --- groups ------------------------------------------------------------------------------------

// Tiles of 8 tokens, so that the fp32 totals of a block, 8 tokens x 2 panels, stay in registers
// while its groups go by.
template <class Tiles, class V, class Form, int kPlanes>
class GroupKernel {
 public:
  static constexpr int kTokens = 8;

  explicit GroupKernel(const Product& product) : p_(product) {}

  void run(int64_t first_panel, int64_t last_panel) {
    const int64_t groups = p_.weights.padded_columns / Form::kElements;
    Tiles::configure(kTokens * kPlanes, Form::kChunk);
    for_each_strip(
        p_, first_panel, last_panel, p_.tiles.count * groups,
        [&](const int64_t* panels, int64_t strip, int64_t count, PanelPrefetch& prefetch) {
          for (int64_t first = 0; first < groups; first += kBlockGroups) {
            const int64_t last = first + kBlockGroups < groups ? first + kBlockGroups : groups;
            select_block(panels, first, last);
            for (int64_t tile = 0; tile < count; ++tile) {
              add_block(p_.tiles.first_token(strip + tile), first, last, prefetch, totals(tile));
            }
          }
          for (int64_t tile = 0; tile < count; ++tile) {
            store_outputs(p_.tiles.first_token(strip + tile), panels, totals(tile));
          }
        });
    Tiles::release();
  }

 private:
  static constexpr int64_t kBlockGroups = kBlockElements / Form::kElements;
  static constexpr int64_t kChunkBytes = Form::kChunk * kPanelOutputs;  // as bytes
  static constexpr int64_t kBlockBytes = kBlockElements * kPanelOutputs;

  float* totals(int64_t tile) { return totals_ + tile * kTokens * 2 * kPanelOutputs; }

  // The quants and scales of groups [first, last) of two panels; nibbles are unpacked.
  void select_block(const int64_t* panels, int64_t first, int64_t last) {
    record_bytes_ = group_bytes<Form>(p_.weights);
    for (int panel = 0; panel < 2; ++panel) {
      const std::byte* records = p_.panel(panels[panel]) + first * record_bytes_;
      scales_[panel] = records + Form::kQuantBytes;
      quants_[panel] = records;
      quants_stride_ = record_bytes_;
      if constexpr (Form::kNibbles) {
        std::byte* bytes = unpacked_ + panel * kBlockBytes;
        quants_[panel] = bytes;
        quants_stride_ = Form::kChunks * kChunkBytes;
        for (int64_t group = 0; group < last - first; ++group) {
          const std::byte* record = records + group * record_bytes_;
          for (int64_t chunk = 0; chunk < Form::kChunks; ++chunk, bytes += kChunkBytes)
            unpack_nibbles<Form>(record + chunk * Form::kChunkBytes, bytes);
        }
      }
    }
    // Tile loads of some units read memory behind the compiler's back.
    asm volatile("" ::: "memory");
  }

  void add_block(int64_t token, int64_t first, int64_t last, PanelPrefetch& prefetch,
                 float* block_totals) {
    V totals[kTokens][2];
    for (auto& token_totals : totals) token_totals[0] = token_totals[1] = V::zero();
    ActivationRow rows[kTokens];
    for (int i = 0; i < kTokens; ++i) rows[i] = activation_row(p_.x, token + i);
    const std::byte* a = p_.token(token) + first * Form::kElements;
    const int64_t count = last - first;
    for (int64_t group = 0; group < count; group += 2) {
      multiply<0>(a, group, rows, first, totals);
      prefetch.step();
      if (group + 1 == count) break;
      multiply<1>(a, group + 1, rows, first, totals);
      prefetch.step();
    }
    for (int64_t group = count < 2 ? 0 : count - 2; group < count; ++group) {
      group % 2 == 0 ? finish_group<0, false>(rows, first, group, totals)
                     : finish_group<1, false>(rows, first, group, totals);
    }
    for (int i = 0; i < kTokens; ++i) {
      const V scale = V::broadcast(rows[i].scales[first / kBlockGroups]);
      for (int panel = 0; panel < 2; ++panel) {
        float* total = block_totals + (i * 2 + panel) * kPanelOutputs;
        const V before = first == 0 ? V::zero() : V::load(total);
        fma(totals[i][panel], scale, before).store(total);
      }
    }
  }

  // The sums of one group into the tiles 0 and 1, or 2 and 3, and the fp32 work on those of the group
  // before the last that they still hold. A tile is stored just before it is needed: by then it is
  // done, and the store costs nothing.
  template <int kSet>
  [[gnu::always_inline]] inline void multiply(const std::byte* a, int64_t group,
                                              const ActivationRow* rows, int64_t first,
                                              V (*totals)[2]) {
    constexpr int64_t kRowBytes = kPanelOutputs * kStepElements;
    for (int64_t chunk = 0; chunk < Form::kChunks; ++chunk) {
      const int64_t at = group * quants_stride_ + chunk * kChunkBytes;
      Tiles::template load<4 + kSet>(a + group * Form::kElements + chunk * Form::kChunk,
                                     p_.plane_stride());
      Tiles::template load<6>(quants_[0] + at, kRowBytes);
      Tiles::template load<7>(quants_[1] + at, kRowBytes);
      unrolled<2>([&](auto panel) ESPALIER_INLINE {
        constexpr int kTile = 2 * kSet + panel;
        if (chunk == 0 && group >= 2) Tiles::template store<kTile>(sums_ + kTile * kTileSums);
        if (chunk == 0) Tiles::template zero<kTile>();
        Tiles::template dot<kTile, 4 + kSet, 6 + panel>();
      });
    }
    if (group >= 2) finish_group<kSet, true>(rows, first, group - 2, totals);
  }

  template <int kSet, bool kStored>
  [[gnu::always_inline]] inline void finish_group(const ActivationRow* rows, int64_t first,
                                                  int64_t group, V (*totals)[2]) {
    int32_t* set_sums = sums_ + 2 * kSet * kTileSums;
    if constexpr (!kStored) {
      Tiles::template store<2 * kSet>(set_sums);
      Tiles::template store<2 * kSet + 1>(set_sums + kTileSums);
    }
    const std::byte* const at[2] = {scales_[0] + group * record_bytes_,
                                    scales_[1] + group * record_bytes_};
    V scales[2], offsets[2];
    load_scales<Form>(p_.weights.scales, at, scales, offsets);
    unrolled<kTokens>([&](auto i) ESPALIER_INLINE {
      const int32_t sum = group_sum<Form>(rows[i], first + group);
      unrolled<2>([&](auto panel) ESPALIER_INLINE {
        const int32_t* sums = set_sums + panel * kTileSums + i * kPlanes * kPanelOutputs;
        V& total = totals[i][panel];
        total = fma(scales[panel], token_sum<V, kPlanes>(sums, sum * Form::kZeroPoint), total);
        if constexpr (Form::kOffsets) total = fma(offsets[panel], V::broadcast_integer(sum), total);
      });
    });
  }

  void store_outputs(int64_t token, const int64_t* panels, const float* totals) {
    for (int64_t i = 0; i < kTokens && token + i < p_.tiles.tokens; ++i) {
      for (int panel = 0; panel < 2; ++panel) {
        V::load(totals + (i * 2 + panel) * kPanelOutputs)
            .store_partial(p_.y + (token + i) * p_.y_stride + panels[panel] * kPanelOutputs,
                           panel_outputs(p_.weights, panels[panel]));
      }
    }
  }

  const Product& p_;
  const std::byte* quants_[2] = {};  // of the block's groups, quants_stride_ apart
  const std::byte* scales_[2] = {};  // record_bytes_ apart
  int64_t quants_stride_ = 0, record_bytes_ = 0;
  alignas(64) std::byte unpacked_[Form::kNibbles ? 2 * kBlockBytes : 1];
  alignas(64) int32_t sums_[4 * kTileSums];
  alignas(64) float totals_[kStripTiles * kTokens * 2 * kPanelOutputs];
};

template <class Tiles, class V, class Form, int kPlanes>
void tile_product(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                  int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  if constexpr (std::is_same_v<Form, ChannelForm>) {
    const Product product = {weights, x, TokenTiles::even(row_count, kTileRows / kPlanes), y,
                             y_stride};
    ChannelKernel<Tiles, V, kPlanes>(product).run(first_panel, last_panel);
  } else {
    using Kernel = GroupKernel<Tiles, V, Form, kPlanes>;
    const Product product = {weights, x, TokenTiles::of_height(row_count, Kernel::kTokens), y,
                             y_stride};
    Kernel(product).run(first_panel, last_panel);
  }
}

template <class Tiles, class V, class Form>
void tile_panels(const LinearLayout& weights, const ActivationLayout& x, int64_t row_count,
                 int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride) {
  const auto kernel =
      x.planes == 2 ? tile_product<Tiles, V, Form, 2> : tile_product<Tiles, V, Form, 1>;
  kernel(weights, x, row_count, first_panel, last_panel, y, y_stride);
}

}  // namespace
}  // namespace espalier::units::cpu
