#include "espalier/units/cpu/kv_int8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "espalier/base/check.h"
#include "espalier/units/cpu/state.h"

namespace espalier::units::cpu {
namespace {

constexpr float kLargest = 65504;  // of fp16, as in a cache of 16 bits

// The byte of channel d of a position in a chunk.
int64_t value_index(int64_t at, int64_t d) {
  return d / kPanelOutputs * int8_panel_bytes(kChunkPositions) + quant_index(at, d % kPanelOutputs);
}

// The integers of one head, and their scale. A NaN makes the scale one.
float quantize_head(const float* x, int64_t count, int8_t* q) {
  float absmax = 0, poison = 0;
  for (int64_t i = 0; i < count; ++i) {
    absmax = std::max(absmax, std::min(std::fabs(x[i]), kLargest));
    if (std::isnan(x[i])) poison = x[i];
  }
  const float scale = absmax / 127;
  if (std::isnan(poison) || absmax < 0x1p-100f) {
    std::fill_n(q, count, int8_t{0});
    return std::isnan(poison) ? poison : 0;
  }
  for (int64_t i = 0; i < count; ++i) q[i] = int8_of(std::clamp(x[i], -kLargest, kLargest), scale);
  return scale;
}

std::byte biased(int8_t q) { return static_cast<std::byte>(q + 128); }
int8_t unbiased(std::byte b) { return static_cast<int8_t>(std::to_integer<int>(b) - 128); }

}  // namespace

Int8KeyValueRows::Int8KeyValueRows(const StateShape& shape, int64_t positions)
    : kv_heads_(shape.kv_heads), head_dim_(shape.head_dim), positions_(positions) {
  key_head_bytes_ = panels_of(positions) * int8_panel_bytes(padded_head_dim());
  value_head_bytes_ = round_up(positions, kChunkPositions) / kChunkPositions * chunk_bytes();
  keys_.resize(static_cast<size_t>(kv_heads_ * key_head_bytes_));
  values_.resize(static_cast<size_t>(kv_heads_ * value_head_bytes_));
  value_scales_.resize(static_cast<size_t>(kv_heads_ * positions));
  const std::vector<float> ones(kPanelOutputs, 1.0f);
  const auto panel_bytes = static_cast<size_t>(int8_panel_bytes(kChunkPositions));
  for (size_t panel = 0; panel < values_.size(); panel += panel_bytes) {
    std::memcpy(values_.data() + panel + int8_scale_at(kChunkPositions, 0), ones.data(),
                ones.size() * sizeof(float));
  }
}

int64_t Int8KeyValueRows::byte_count() const {
  return static_cast<int64_t>(keys_.size() + values_.size() + value_scales_.size() * sizeof(float));
}

LinearLayout Int8KeyValueRows::keys(int64_t head, int64_t count) const {
  return {.panels = keys_.data() + head * key_head_bytes_,
          .panel_bytes = int8_panel_bytes(padded_head_dim()),
          .rows = count,
          .columns = head_dim_,
          .padded_columns = padded_head_dim(),
          .form = WeightForm::kInt8Channel,
          .group_elements = 0,
          .has_offsets = false,
          .scales = ScaleForm::kFloat32};
}

LinearLayout Int8KeyValueRows::values(int64_t head, int64_t chunk) const {
  return {.panels = values_.data() + head * value_head_bytes_ + chunk * chunk_bytes(),
          .panel_bytes = int8_panel_bytes(kChunkPositions),
          .rows = head_dim_,
          .columns = kChunkPositions,
          .padded_columns = kChunkPositions,
          .form = WeightForm::kInt8Channel,
          .group_elements = 0,
          .has_offsets = false,
          .scales = ScaleForm::kFloat32};
}

std::byte* Int8KeyValueRows::key_panel(int64_t head, int64_t position) {
  return keys_.data() + head * key_head_bytes_ +
         position / kPanelOutputs * int8_panel_bytes(padded_head_dim());
}

std::byte* Int8KeyValueRows::key(int64_t head, int64_t position, int64_t d) {
  return key_panel(head, position) + quant_index(d, position % kPanelOutputs);
}

std::byte* Int8KeyValueRows::key_scale(int64_t head, int64_t position) {
  return key_panel(head, position) + int8_scale_at(padded_head_dim(), position % kPanelOutputs);
}

std::byte* Int8KeyValueRows::value(int64_t head, int64_t position, int64_t d) {
  return values_.data() + head * value_head_bytes_ + position / kChunkPositions * chunk_bytes() +
         value_index(position % kChunkPositions, d);
}

void Int8KeyValueRows::write_position(int64_t position, const float* k, const float* v) {
  CHECK_LE(head_dim_, kBlockElements);
  std::array<int8_t, kBlockElements> q;
  for (int64_t head = 0; head < kv_heads_; ++head, k += head_dim_, v += head_dim_) {
    const float scale = quantize_head(k, head_dim_, q.data());
    std::memcpy(key_scale(head, position), &scale, sizeof(scale));
    for (int64_t d = 0; d < head_dim_; ++d)
      *key(head, position, d) = biased(q[static_cast<size_t>(d)]);
    value_scales_[static_cast<size_t>(head * positions_ + position)] =
        quantize_head(v, head_dim_, q.data());
    for (int64_t d = 0; d < head_dim_; ++d)
      *value(head, position, d) = biased(q[static_cast<size_t>(d)]);
  }
}

void Int8KeyValueRows::copy_position(const Int8KeyValueRows& from, int64_t from_position,
                                     int64_t to_position) {
  for (int64_t head = 0; head < kv_heads_; ++head) {
    std::memcpy(key_scale(head, to_position), from.key_scale(head, from_position), sizeof(float));
    value_scales_[static_cast<size_t>(head * positions_ + to_position)] =
        from.value_scales(head)[from_position];
    for (int64_t d = 0; d < head_dim_; ++d) {
      *key(head, to_position, d) = *from.key(head, from_position, d);
      *value(head, to_position, d) = *from.value(head, from_position, d);
    }
  }
}

void Int8KeyValueRows::copy_first(const Int8KeyValueRows& from, int64_t positions) {
  const int64_t key_bytes = panels_of(positions) * int8_panel_bytes(padded_head_dim());
  const int64_t value_bytes =
      round_up(positions, kChunkPositions) / kChunkPositions * chunk_bytes();
  for (int64_t head = 0; head < kv_heads_; ++head) {
    std::copy_n(from.keys_.data() + head * from.key_head_bytes_, key_bytes,
                keys_.data() + head * key_head_bytes_);
    std::copy_n(from.values_.data() + head * from.value_head_bytes_, value_bytes,
                values_.data() + head * value_head_bytes_);
    std::copy_n(from.value_scales(head), positions, value_scales_.data() + head * positions_);
  }
}

void Int8KeyValueRows::copy_value(int64_t head, int64_t position, std::byte* chunk_bytes,
                                  int64_t at) const {
  for (int64_t d = 0; d < head_dim_; ++d) {
    chunk_bytes[value_index(at, d)] = *value(head, position, d);
  }
}

int64_t Int8KeyValueRows::position_bytes(const StateShape& shape) {
  return 2 * shape.channels + scale_bytes(shape);
}

int64_t Int8KeyValueRows::scale_bytes(const StateShape& shape) {
  return 2 * shape.kv_heads * int64_t{sizeof(float)};
}

void Int8KeyValueRows::read_position(int64_t position, std::span<std::byte> out) const {
  auto at = out.begin();
  const auto append_scale = [&at](const void* scale) {
    at = std::copy_n(static_cast<const std::byte*>(scale), sizeof(float), at);
  };
  for (int64_t head = 0; head < kv_heads_; ++head) {
    for (int64_t d = 0; d < head_dim_; ++d)
      *at++ = static_cast<std::byte>(unbiased(*key(head, position, d)));
    append_scale(key_scale(head, position));
    for (int64_t d = 0; d < head_dim_; ++d)
      *at++ = static_cast<std::byte>(unbiased(*value(head, position, d)));
    append_scale(value_scales(head) + position);
  }
}

void Int8KeyValueRows::write_position_bytes(int64_t position, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  for (int64_t head = 0; head < kv_heads_; ++head) {
    for (int64_t d = 0; d < head_dim_; ++d)
      *key(head, position, d) = biased(static_cast<int8_t>(*at++));
    std::memcpy(key_scale(head, position), at, sizeof(float));
    at += sizeof(float);
    for (int64_t d = 0; d < head_dim_; ++d)
      *value(head, position, d) = biased(static_cast<int8_t>(*at++));
    std::memcpy(value_scales_.data() + head * positions_ + position, at, sizeof(float));
    at += sizeof(float);
  }
}

}  // namespace espalier::units::cpu
