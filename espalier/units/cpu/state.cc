#include "espalier/units/cpu/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "espalier/base/check.h"
#include "espalier/units/cpu/attention_layout.h"
#include "espalier/units/cpu/state_bytes.h"

namespace espalier::units::cpu {

using program::StateKind;

KeyValueRows::KeyValueRows(const StateShape& shape, int64_t positions)
    : kv_heads_(shape.kv_heads),
      head_dim_(shape.head_dim),
      key_elements_(key_elements(positions, shape.head_dim)),
      value_elements_(value_elements(positions, shape.head_dim)),
      keys_(static_cast<size_t>(shape.kv_heads * key_elements_)),
      values_(static_cast<size_t>(shape.kv_heads * value_elements_)) {}

void KeyValueRows::copy_position(const KeyValueRows& from, int64_t from_position,
                                 int64_t to_position) {
  const int64_t stride = value_stride(head_dim_);
  for (int64_t head = 0; head < kv_heads_; ++head) {
    const uint16_t* source = from.keys(head) + key_index(from_position, 0, head_dim_);
    uint16_t* target = keys(head) + key_index(to_position, 0, head_dim_);
    for (int64_t d = 0; d < head_dim_; ++d) target[d * kLanes] = source[d * kLanes];
    std::copy_n(from.values(head) + from_position * stride, stride,
                values(head) + to_position * stride);
  }
}

void KeyValueRows::copy_first(const KeyValueRows& from, int64_t positions) {
  for (int64_t head = 0; head < kv_heads_; ++head) {
    std::copy_n(from.keys(head), key_elements(positions, head_dim_), keys(head));
    std::copy_n(from.values(head), value_elements(positions, head_dim_), values(head));
  }
}

void KeyValueRows::read_position(int64_t position, uint16_t* k, uint16_t* v) const {
  for (int64_t head = 0; head < kv_heads_; ++head) {
    const uint16_t* source = keys(head) + key_index(position, 0, head_dim_);
    for (int64_t d = 0; d < head_dim_; ++d) *k++ = source[d * kLanes];
    v = std::copy_n(values(head) + position * value_stride(head_dim_), head_dim_, v);
  }
}

void KeyValueRows::write_position(int64_t position, const uint16_t* k, const uint16_t* v) {
  for (int64_t head = 0; head < kv_heads_; ++head, v += head_dim_) {
    uint16_t* target = keys(head) + key_index(position, 0, head_dim_);
    for (int64_t d = 0; d < head_dim_; ++d) target[d * kLanes] = *k++;
    std::copy_n(v, head_dim_, values(head) + position * value_stride(head_dim_));
  }
}

int64_t KeyValueRows::position_bytes(const StateShape& shape) {
  return 2 * shape.channels * int64_t{sizeof(uint16_t)};
}

void KeyValueRows::read_position(int64_t position, std::span<std::byte> out) const {
  auto* halves = reinterpret_cast<uint16_t*>(out.data());
  read_position(position, halves, halves + out.size() / 2 / sizeof(uint16_t));
}

void KeyValueRows::write_position_bytes(int64_t position, std::span<const std::byte> bytes) {
  const auto* halves = reinterpret_cast<const uint16_t*>(bytes.data());
  write_position(position, halves, halves + bytes.size() / 2 / sizeof(uint16_t));
}

namespace {

Error out_of_memory(int64_t kv_rows) {
  return out_of_memory_error("no memory for a KV cache",
                             fmt::format("room for {} positions", kv_rows),
                             "Close other programs, or use a shorter context.");
}

Status check_bucket(const StateLayout& layout, int64_t kv_rows) {
  if (std::binary_search(layout.buckets.begin(), layout.buckets.end(), kv_rows)) return Ok{};
  return Error{.what = "no function of this model has that KV length",
               .expected = fmt::format("one of {}", fmt::join(layout.buckets, ", ")),
               .actual = std::to_string(kv_rows),
               .fix = "Ask for one of the model's buckets."};
}

}  // namespace

Result<std::unique_ptr<CpuState>> CpuState::create(std::shared_ptr<const StateLayout> layout,
                                                   int64_t kv_rows) {
  RETURN_IF_ERROR(check_bucket(*layout, kv_rows));
  try {
    std::unique_ptr<CpuState> state(new CpuState(std::move(layout)));
    state->kv_rows_ = kv_rows;
    const int64_t window = state->layout_->window_rows;
    state->staged_parents_.reserve(static_cast<size_t>(window));
    for (const StateShape& shape : state->layout_->states) {
      Layer& layer = state->layers_.emplace_back();
      if (shape.kind == StateKind::kKeyValue) {
        state->with_kv(layer, [&]<class Rows>(Rows& kv, Rows& staged) {
          kv = Rows(shape, kv_rows);
          staged = Rows(shape, window);
        });
      } else {
        layer.conv.assign(static_cast<size_t>(shape.rows * shape.channels), 0.0f);
        layer.staged_conv.assign(static_cast<size_t>(window * shape.channels), 0.0f);
      }
    }
    return state;
  } catch (const std::bad_alloc&) {
    return out_of_memory(kv_rows);
  }
}

int64_t CpuState::byte_count() const {
  int64_t bytes = 0;
  for (const Layer& layer : layers_) {
    with_kv(layer, [&bytes](const auto& kv, const auto& staged) {
      bytes += kv.byte_count() + staged.byte_count();
    });
    bytes += static_cast<int64_t>((layer.conv.size() + layer.staged_conv.size()) * sizeof(float));
  }
  return bytes;
}

const float* CpuState::conv_row(size_t state, int64_t row) const {
  return layers_[state].conv.data() + row * layout_->states[state].channels;
}

float* CpuState::staged_conv_row(size_t state, int64_t row) {
  return layers_[state].staged_conv.data() + row * layout_->states[state].channels;
}

void CpuState::commit(std::span<const int32_t> path) {
  const auto length = static_cast<int64_t>(path.size());
  CHECK_LE(committed_ + length, kv_rows_);
  int32_t parent = -1;
  for (const int32_t row : path) {
    CHECK_GE(row, 0);
    CHECK_LT(static_cast<size_t>(row), staged_parents_.size());
    CHECK_EQ(staged_parents_[static_cast<size_t>(row)], parent);
    parent = row;
  }
  for (size_t id = 0; id < layers_.size(); ++id) {
    Layer& layer = layers_[id];
    const StateShape& shape = layout_->states[id];
    if (shape.kind == StateKind::kShortConv) {
      commit_conv(shape, layer, path);
      continue;
    }
    with_kv(layer, [&](auto& kv, const auto& staged) {
      for (int64_t i = 0; i < length; ++i)
        kv.copy_position(staged, path[static_cast<size_t>(i)], committed_ + i);
    });
  }
  committed_ += length;
  staged_parents_.clear();
}

// Keeps the last rows of (old rows ++ path): the old ones move up first, which never overwrites one
// still needed.
void CpuState::commit_conv(const StateShape& shape, Layer& layer, std::span<const int32_t> path) {
  const auto length = static_cast<int64_t>(path.size());
  const auto row_of = [&shape](std::vector<float>& rows, int64_t row) {
    return rows.data() + row * shape.channels;
  };
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t source = row + length;  // in (old rows ++ path)
    const float* from =
        source < shape.rows
            ? row_of(layer.conv, source)
            : row_of(layer.staged_conv, path[static_cast<size_t>(source - shape.rows)]);
    if (from != row_of(layer.conv, row)) std::copy_n(from, shape.channels, row_of(layer.conv, row));
  }
}

Status CpuState::resize(int64_t kv_rows) {
  if (kv_rows < committed_) {
    return Error{.what = "a KV cache cannot shrink below what is committed",
                 .expected = fmt::format("at least {} positions", committed_),
                 .actual = std::to_string(kv_rows),
                 .fix = "Truncate the state first."};
  }
  RETURN_IF_ERROR(check_bucket(*layout_, kv_rows));
  // Layer by layer, so that only one layer exists twice. A layer knows its own length, so a state
  // whose growth fails half way is as good as before.
  kv_rows_ = std::min(kv_rows_, kv_rows);
  try {
    for (size_t id = 0; id < layers_.size(); ++id) {
      if (layout_->states[id].kind != StateKind::kKeyValue) continue;
      with_kv(layers_[id], [&]<class Rows>(Rows& kv, const Rows&) {
        Rows resized(layout_->states[id], kv_rows);
        resized.copy_first(kv, committed_);
        kv = std::move(resized);
      });
    }
  } catch (const std::bad_alloc&) {
    return out_of_memory(kv_rows);
  }
  kv_rows_ = kv_rows;
  return Ok{};
}

Status CpuState::truncate(int64_t length) {
  const bool has_conv =
      std::any_of(layout_->states.begin(), layout_->states.end(),
                  [](const StateShape& shape) { return shape.kind == StateKind::kShortConv; });
  if (length < 0 || length > committed_ || (has_conv && length != 0 && length != committed_)) {
    return Error{.what = "a state cannot be cut to that length",
                 .expected = has_conv
                                 ? fmt::format("0 or {} (the model has convolutions)", committed_)
                                 : fmt::format("0 to {}", committed_),
                 .actual = std::to_string(length),
                 .fix = "Start again from length 0."};
  }
  if (length == 0) {
    for (Layer& layer : layers_) std::fill(layer.conv.begin(), layer.conv.end(), 0.0f);
  }
  committed_ = length;
  staged_parents_.clear();
  return Ok{};
}

std::vector<std::byte> CpuState::to_bytes() const {
  StateBytesWriter writer(*layout_, committed_);
  for (size_t id = 0; id < layers_.size(); ++id) {
    const Layer& layer = layers_[id];
    const StateShape& shape = layout_->states[id];
    if (shape.kind == StateKind::kShortConv) {
      writer.append(std::as_bytes(std::span(layer.conv)));
      continue;
    }
    with_kv(layer, [&]<class Rows>(const Rows& kv, const Rows&) {
      std::vector<std::byte> bytes(static_cast<size_t>(Rows::position_bytes(shape)));
      for (int64_t position = 0; position < committed_; ++position) {
        kv.read_position(position, bytes);
        writer.append(bytes);
      }
    });
  }
  return writer.take();
}

Result<std::unique_ptr<CpuState>> CpuState::from_bytes(std::shared_ptr<const StateLayout> layout,
                                                       std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(StateBytesReader reader, StateBytesReader::open(*layout, bytes));
  const auto bucket =
      std::lower_bound(layout->buckets.begin(), layout->buckets.end(), reader.committed());
  if (bucket == layout->buckets.end()) {
    return Error{.what = "the saved state is longer than this model's largest KV cache",
                 .expected = fmt::format("at most {} positions", layout->buckets.back()),
                 .actual = std::to_string(reader.committed()),
                 .fix = "Load the model with a longer context."};
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CpuState> state, create(std::move(layout), *bucket));
  state->committed_ = reader.committed();
  for (size_t id = 0; id < state->layers_.size(); ++id) {
    Layer& layer = state->layers_[id];
    const StateShape& shape = state->layout_->states[id];
    if (shape.kind == StateKind::kShortConv) {
      reader.read(std::as_writable_bytes(std::span(layer.conv)));
      continue;
    }
    state->with_kv(layer, [&]<class Rows>(Rows& kv, const Rows&) {
      std::vector<std::byte> content(static_cast<size_t>(Rows::position_bytes(shape)));
      for (int64_t position = 0; position < state->committed_; ++position) {
        reader.read(content);
        kv.write_position_bytes(position, content);
      }
    });
  }
  return state;
}

}  // namespace espalier::units::cpu
