// CpuState: KV cache (fp16, or int8) and convolution rows (fp32) of one sequence, with the staged rows of
// its last run.
//
// Staged rows live here rather than in the Executable, so that several sequences can be run in turn
// and each committed later. Memory is allocated by create and resize only. One caller at a time.
// Its layout is that of attention_layout.h; the exported form is plain [position][channels], so
// that other units can read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/program/program.h"
#include "espalier/units/cpu/kv_int8.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

// One state of the programs. KV: kv_heads heads of head_dim channels. Convolution: `rows` rows of
// `channels`.
struct StateShape {
  program::StateKind kind = program::StateKind::kKeyValue;
  int64_t channels = 0;
  int64_t kv_heads = 0;  // key-value only
  int64_t head_dim = 0;  // key-value only
  int64_t rows = 0;      // convolution only: kernel - 1
  bool operator==(const StateShape&) const = default;
};

struct StateLayout {
  std::vector<StateShape> states;  // by StateId
  std::vector<int64_t> buckets;    // kv_rows that functions exist for, ascending
  int kv_bits = 16;                // 16: KeyValueRows, fp16; 8: Int8KeyValueRows
  int64_t window_rows = 0;         // the largest window
};

// K and V of one layer: `positions` positions of every KV head, heads apart.
class KeyValueRows {
 public:
  KeyValueRows() = default;
  KeyValueRows(const StateShape& shape, int64_t positions);

  uint16_t* keys(int64_t head) { return keys_.data() + head * key_elements_; }
  uint16_t* values(int64_t head) { return values_.data() + head * value_elements_; }
  const uint16_t* keys(int64_t head) const { return keys_.data() + head * key_elements_; }
  const uint16_t* values(int64_t head) const { return values_.data() + head * value_elements_; }
  int64_t byte_count() const {
    return static_cast<int64_t>((keys_.size() + values_.size()) * sizeof(uint16_t));
  }

  // Copies one position of all heads.
  void copy_position(const KeyValueRows& from, int64_t from_position, int64_t to_position);
  // Copies the first positions of all heads from rows of another length.
  void copy_first(const KeyValueRows& from, int64_t positions);
  // One position as bytes, aligned as halves are: K [channels] fp16, then V.
  static int64_t position_bytes(const StateShape& shape);
  void read_position(int64_t position, std::span<std::byte> out) const;
  void write_position_bytes(int64_t position, std::span<const std::byte> bytes);
  // One position as [channels], K or V.
  void read_position(int64_t position, uint16_t* k, uint16_t* v) const;
  void write_position(int64_t position, const uint16_t* k, const uint16_t* v);

 private:
  int64_t kv_heads_ = 0;
  int64_t head_dim_ = 0;
  int64_t key_elements_ = 0;    // of one head
  int64_t value_elements_ = 0;  // of one head
  std::vector<uint16_t> keys_;
  std::vector<uint16_t> values_;
};

class CpuState final : public units::State {
 public:
  // `kv_rows` must be a bucket of the layout.
  static Result<std::unique_ptr<CpuState>> create(std::shared_ptr<const StateLayout> layout,
                                                  int64_t kv_rows);

  int64_t committed_length() const override { return committed_; }
  int64_t kv_rows() const override { return kv_rows_; }
  int64_t byte_count() const override;

  // What run() reads and stages. `state` is a StateId of that kind.
  const KeyValueRows& committed_kv(size_t state) const { return layers_[state].kv; }
  KeyValueRows& staged_kv(size_t state) { return layers_[state].staged_kv; }
  const Int8KeyValueRows& committed_kv8(size_t state) const { return layers_[state].kv8; }
  Int8KeyValueRows& staged_kv8(size_t state) { return layers_[state].staged_kv8; }
  const float* conv_row(size_t state, int64_t row) const;  // oldest first
  float* staged_conv_row(size_t state, int64_t row);

  // The parents of the rows that a run is about to stage: commit() checks its path against them.
  void stage_rows(std::span<const int32_t> parents) {
    staged_parents_.assign(parents.begin(), parents.end());
  }
  // Keeps staged rows, each the parent of the next. Once for each run.
  void commit(std::span<const int32_t> path);
  Status resize(int64_t kv_rows);
  Status truncate(int64_t length);
  std::vector<std::byte> to_bytes() const;
  static Result<std::unique_ptr<CpuState>> from_bytes(std::shared_ptr<const StateLayout> layout,
                                                      std::span<const std::byte> bytes);

  const StateLayout& layout() const { return *layout_; }

 private:
  struct Layer {
    KeyValueRows kv, staged_kv;  // one of these pairs is empty
    Int8KeyValueRows kv8, staged_kv8;
    std::vector<float> conv, staged_conv;  // [kernel - 1, channels], [window_rows, channels]
  };

  explicit CpuState(std::shared_ptr<const StateLayout> layout) : layout_(std::move(layout)) {}
  void commit_conv(const StateShape& shape, Layer& layer, std::span<const int32_t> path);
  // Calls function(layer.*kv, layer.*staged_kv) with the pair that is in use.
  template <class LayerType, class Function>
  void with_kv(LayerType& layer, Function function) const {
    if (layout_->kv_bits == 8) return function(layer.kv8, layer.staged_kv8);
    function(layer.kv, layer.staged_kv);
  }

  std::shared_ptr<const StateLayout> layout_;
  int64_t kv_rows_ = 0;
  int64_t committed_ = 0;
  std::vector<int32_t> staged_parents_;  // room for window_rows
  std::vector<Layer> layers_;            // by StateId
};

}  // namespace espalier::units::cpu
