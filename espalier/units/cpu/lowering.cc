// make_plan: each op of a program becomes one or a few steps. A step is a closure over resolved
// buffers and weights; the accesses beside it say what it touches, from which place_barriers()
// follows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "espalier/base/check.h"
#include "espalier/program/ops.h"
#include "espalier/units/cpu/attention_int8.h"
#include "espalier/units/cpu/attention_layout.h"
#include "espalier/units/cpu/panel_layout.h"
#include "espalier/units/cpu/plan.h"

namespace espalier::units::cpu {
namespace {

using program::Op;
using program::OpKind;
using program::Program;
using program::ValueId;
using program::Weight;
using By = Split::By;

constexpr int64_t kResourceAddresses = int64_t{1}
                                       << 60;  // beyond the arena: things that are not buffers
constexpr int64_t kHeadTilePanels = 16;        // logits of 256 tokens at a time: 64 KB for 64 rows
constexpr int64_t kPortionPanels = 2;          // kernels compute two at once

// The channels of the panels of a share.
struct ChannelRange {
  ChannelRange(const Share& share, int64_t channels)
      : first(share.first * kPanelOutputs),
        count(std::min(share.last * kPanelOutputs, channels) - share.first * kPanelOutputs) {}
  int64_t first, count;
};

bool is_product(const Op& op) {
  return op.kind == OpKind::kLinear || op.kind == OpKind::kHeadArgmax ||
         op.kind == OpKind::kHeadLogits;
}
bool is_norm(const Op& op) { return op.kind == OpKind::kRmsNorm || op.kind == OpKind::kLayerNorm; }

struct AttentionShape {
  size_t state;
  int64_t heads, kv_heads, head_dim;
  float scale;
  int64_t group() const { return heads / kv_heads; }
};

class Lowering {
 public:
  Lowering(const Program& program, const WeightStore& weights, int64_t kv_rows, int planes,
           int kv_bits, PlanKind kind, ActivationSlots& slots)
      : program_(program),
        weights_(weights),
        kv_rows_(kv_rows),
        planes_(planes),
        kv_bits_(kv_bits),
        few_rows_(kind == PlanKind::kFewRows),
        slots_(slots) {}

  Result<Plan> run();

 private:
  using Run = std::function<void(const Call&, const Share&)>;
  using RowRun = std::function<void(const Call&, int64_t row, float* y)>;
  // A value that products alone read: made, row by row, where it is quantised.
  struct Deferred {
    ValueId input;
    RowRun run;
  };

  // Buffers and what steps do with them.
  void find_last_uses();
  Buffer define(ValueId value, RowSet rows);
  Buffer temporary(int64_t channels, RowSet rows, int64_t last_op);
  const Buffer& buffer(ValueId value) const { return buffers_[static_cast<size_t>(value)]; }
  int64_t capacity(RowSet rows) const;
  Access access(const Buffer& buffer, bool writes, bool own_share) const;
  Access reads_own(const Buffer& b) const { return access(b, false, true); }
  Access reads_all(const Buffer& b) const { return access(b, false, false); }
  Access writes_own(const Buffer& b) const { return access(b, true, true); }
  enum class Resource : uint8_t { kActivations, kStagedKv, kStagedConv };
  static Access resource(Resource kind, size_t index, bool writes, bool own_share);
  void emit(const Split& split, std::vector<Access> accesses, Run run);
  // The work of the last step may be taken by other threads.
  void share_out(int64_t least_items, int64_t item_bytes);
  const Weight& weight(const Op& op, size_t slot) const {
    return program_.weights[static_cast<size_t>(op.weights[slot])];
  }
  const float* optional_vector(const Op& op, size_t slot) const {
    return slot < op.weights.size() ? weights_.vector(weight(op, slot)) : nullptr;
  }

  // One function an op.
  Status lower(const Op& op);
  Status check_rows(const Op& op) const;
  void embeddings(ValueId value);
  void linear(const Op& op);
  size_t quantized(ValueId value, const PackedLinear& matrix);
  std::vector<Access> reads_operand(size_t slot) const;
  bool only_multiplied(ValueId value) const;
  void norm(const Op& op, RowRun run);
  void rms_norm(const Op& op);
  void layer_norm(const Op& op);
  Buffer rope_table(const Op& op);
  void rope(const Op& op);
  void short_conv(const Op& op);
  void kv_write(const Op& op);
  void attention(const Op& op);
  // Queries [first, last) of a KV head.
  using RunQueries =
      std::function<void(const Call&, int64_t kv_head, int64_t first, int64_t last, int thread)>;
  RunQueries half_attention(const AttentionShape& shape, const Buffer& q, const Buffer& y);
  RunQueries int8_attention(const AttentionShape& shape, const Buffer& q, const Buffer& y);
  void by_channels(const Op& op, void (*apply)(const Call&, const float* a, const float* b,
                                               int64_t count, float* y));
  void gather_rows(const Op& op);
  void mean_pool(const Op& op);
  void head_argmax(const Op& op);
  void head_logits(const Op& op);
  void tap(ValueId value);
  void want_scratch(int64_t floats) {
    plan_.thread_scratch_floats = std::max(plan_.thread_scratch_floats, round_up_to_lanes(floats));
  }

  const Program& program_;
  const WeightStore& weights_;
  const int64_t kv_rows_;
  const int planes_;
  const int kv_bits_;
  const bool few_rows_;
  ActivationSlots& slots_;
  Plan plan_;
  std::vector<Step> steps_;
  ArenaPlanner arena_;
  int64_t op_index_ = 0;
  std::vector<Buffer> buffers_;     // by ValueId
  std::vector<int64_t> last_uses_;  // by ValueId: index of the last op that reads it
  std::map<size_t, ValueId> held_;  // what an activation slot holds at this point
  std::map<ValueId, Deferred> deferred_;
  std::map<std::pair<std::vector<double>, double>, Buffer> rope_tables_;
};

// ---- buffers, accesses, steps ----

void Lowering::find_last_uses() {
  last_uses_.assign(program_.values.size(), -1);
  for (size_t i = 0; i < program_.ops.size(); ++i) {
    for (const ValueId input : program_.ops[i].inputs)
      last_uses_[static_cast<size_t>(input)] = static_cast<int64_t>(i);
  }
  for (const Op& op : program_.ops) {  // what is deferred reads its input later
    if (!is_norm(op) || !only_multiplied(op.outputs[0])) continue;
    int64_t& last_use = last_uses_[static_cast<size_t>(op.inputs[0])];
    last_use = std::max(last_use, last_uses_[static_cast<size_t>(op.outputs[0])]);
  }
}

bool Lowering::only_multiplied(ValueId value) const {
  if (std::ranges::find(program_.taps(), value) != program_.taps().end()) return false;
  return std::ranges::all_of(program_.ops, [value](const Op& op) {
    return is_product(op) || std::ranges::find(op.inputs, value) == op.inputs.end();
  });
}

int64_t Lowering::capacity(RowSet rows) const {
  if (rows == RowSet::kOne) return 1;
  return rows == RowSet::kWindow ? program_.rows : program_.selected;
}

Buffer Lowering::temporary(int64_t channels, RowSet rows, int64_t last_op) {
  Buffer buffer{
      .offset = 0, .stride = round_up_to_lanes(channels), .channels = channels, .rows = rows};
  buffer.offset = arena_.allocate(buffer.stride * capacity(rows), op_index_, last_op);
  return buffer;
}

Buffer Lowering::define(ValueId value, RowSet rows) {
  const auto id = static_cast<size_t>(value);
  buffers_[id] =
      temporary(program_.value(value).shape.channels, rows, std::max(last_uses_[id], op_index_));
  return buffers_[id];
}

Access Lowering::access(const Buffer& buffer, bool writes, bool own_share) const {
  return {.first = buffer.offset,
          .last = buffer.offset + buffer.stride * capacity(buffer.rows),
          .stride = buffer.stride,
          .writes = writes,
          .own_share = own_share};
}

Access Lowering::resource(Resource kind, size_t index, bool writes, bool own_share) {
  const int64_t address =
      kResourceAddresses + static_cast<int64_t>(index) * 4 + static_cast<int64_t>(kind);
  return {
      .first = address, .last = address + 1, .stride = 0, .writes = writes, .own_share = own_share};
}

void Lowering::emit(const Split& split, std::vector<Access> accesses, Run run) {
  steps_.push_back({.split = split, .accesses = std::move(accesses), .run = std::move(run)});
}

void Lowering::share_out(int64_t least_items, int64_t item_bytes) {
  steps_.back().least_items = least_items;
  steps_.back().item_bytes = item_bytes;
}

// ---- ops ----

void Lowering::embeddings(ValueId value) {
  const Buffer y = define(value, RowSet::kWindow);
  plan_.hidden = y.channels;
  emit({By::kRows, y.rows, 0}, {writes_own(y)}, [=](const Call& call, const Share& share) {
    for (int64_t row = share.first; row < share.last; ++row) {
      std::copy_n(call.inputs.embeddings.data() + row * y.channels, y.channels, call.row(y, row));
    }
  });
}

// The slot that holds `value` quantised for `matrix`; linears in a row that read the same value
// share it.
size_t Lowering::quantized(ValueId value, const PackedLinear& matrix) {
  const size_t slot = slots_.slot(
      {matrix.columns(), matrix.activation_planes(planes_), ActivationSlots::Use::kLinear});
  const auto held = held_.find(slot);
  if (held != held_.end() && held->second == value) return slot;
  held_[slot] = value;
  const auto deferred = deferred_.find(value);
  const RowRun make_row = deferred == deferred_.end() ? RowRun() : deferred->second.run;
  const Buffer x = buffer(make_row ? deferred->second.input : value);
  if (make_row) want_scratch(matrix.columns());
  const Run run = [=](const Call& call, const Share& share) {
    Activations& operand = call.operand(slot, share.thread);
    if (!make_row) {
      call.kernels.quantize_rows(call.row(x, 0), x.stride, share.first, share.last - share.first,
                                 operand);
      return;
    }
    float* y = call.scratch(share.thread);
    for (int64_t row = share.first; row < share.last; ++row) {
      make_row(call, row, y);
      call.kernels.quantize_rows(y, 0, row, 1, operand);
    }
  };
  if (few_rows_) {
    emit({By::kEveryThread, x.rows, 0}, {reads_all(x)}, run);
  } else {
    emit({By::kRows, x.rows, 0}, {reads_own(x), resource(Resource::kActivations, slot, true, true)},
         run);
  }
  return slot;
}

// With few rows the operand is the thread's own.
std::vector<Access> Lowering::reads_operand(size_t slot) const {
  if (few_rows_) return {};
  return {resource(Resource::kActivations, slot, false, false)};
}

void Lowering::linear(const Op& op) {
  const PackedLinear& matrix = weights_.matrix(weight(op, 0));
  const size_t slot = quantized(op.inputs[0], matrix);
  const float* bias = optional_vector(op, 1);
  const Buffer y = define(op.outputs[0], buffer(op.inputs[0]).rows);
  std::vector<Access> accesses = reads_operand(slot);
  accesses.push_back(writes_own(y));
  emit({By::kPanels, y.rows, matrix.panel_count()}, accesses,
       [=, &matrix](const Call& call, const Share& share) {
         const int64_t rows = call.row_count(y.rows);
         call.kernels.linear(matrix, call.operand(slot, share.thread), rows, share.first,
                             share.last, call.row(y, 0), y.stride);
         if (bias == nullptr) return;
         const ChannelRange range(share, y.channels);
         for (int64_t row = 0; row < rows; ++row) {
           float* out = call.row(y, row) + range.first;
           call.kernels.add(out, bias + range.first, range.count, out);
         }
       });
  share_out(kPortionPanels, matrix.layout().panel_bytes);
}

void Lowering::norm(const Op& op, RowRun run) {
  const Buffer x = buffer(op.inputs[0]);
  if (only_multiplied(op.outputs[0])) {
    buffers_[static_cast<size_t>(op.outputs[0])] = {.channels = x.channels, .rows = x.rows};
    deferred_[op.outputs[0]] = {.input = op.inputs[0], .run = std::move(run)};
    return;
  }
  const Buffer y = define(op.outputs[0], x.rows);
  emit({By::kRows, x.rows, 0}, {reads_own(x), writes_own(y)},
       [=, run = std::move(run)](const Call& call, const Share& share) {
         for (int64_t row = share.first; row < share.last; ++row) run(call, row, call.row(y, row));
       });
}

void Lowering::rms_norm(const Op& op) {
  const Buffer x = buffer(op.inputs[0]);
  const int64_t group = weight(op, 0).rows * weight(op, 0).columns;
  const float* scale = weights_.vector(weight(op, 0));
  const auto epsilon = static_cast<float>(op.number("epsilon"));
  norm(op, [=](const Call& call, int64_t row, float* y) {
    call.kernels.rms_norm(call.row(x, row), scale, x.channels, group, epsilon, y);
  });
}

void Lowering::layer_norm(const Op& op) {
  const Buffer x = buffer(op.inputs[0]);
  const float* scale = weights_.vector(weight(op, 0));
  const float* bias = weights_.vector(weight(op, 1));
  const auto epsilon = static_cast<float>(op.number("epsilon"));
  norm(op, [=](const Call& call, int64_t row, float* y) {
    call.kernels.layer_norm(call.row(x, row), scale, bias, x.channels, epsilon, y);
  });
}

// Cosines, then sines, of every row's position: computed once a call, whichever ops and layers use
// them.
Buffer Lowering::rope_table(const Op& op) {
  const std::vector<double>& frequencies = op.list("frequencies");
  const double scale = op.number("scale");
  const auto known = rope_tables_.find({frequencies, scale});
  if (known != rope_tables_.end()) return known->second;
  const auto pairs = static_cast<int64_t>(frequencies.size());
  const Buffer table = temporary(2 * pairs, RowSet::kWindow, std::numeric_limits<int64_t>::max());
  emit({By::kRows, table.rows, 0}, {writes_own(table)}, [=](const Call& call, const Share& share) {
    for (int64_t row = share.first; row < share.last; ++row) {
      float* out = call.row(table, row);
      for (int64_t i = 0; i < pairs; ++i) {
        const auto angle = static_cast<double>(static_cast<float>(
            call.inputs.positions[static_cast<size_t>(row)] * frequencies[static_cast<size_t>(i)]));
        out[i] = static_cast<float>(std::cos(angle) * scale);
        out[pairs + i] = static_cast<float>(std::sin(angle) * scale);
      }
    }
  });
  return rope_tables_[{frequencies, scale}] = table;
}

void Lowering::rope(const Op& op) {
  const Buffer x = buffer(op.inputs[0]);
  const Buffer table = rope_table(op);
  const int64_t head_dim = op.integer("head_dim");
  const bool interleaved = op.text("style") == "interleaved";
  const Buffer y = define(op.outputs[0], x.rows);
  emit({By::kRows, x.rows, 0}, {reads_own(x), reads_own(table), writes_own(y)},
       [=](const Call& call, const Share& share) {
         const int64_t pairs = table.channels / 2;
         for (int64_t row = share.first; row < share.last; ++row) {
           const float* cosines = call.row(table, row);
           call.kernels.rope(call.row(x, row), cosines, cosines + pairs, x.channels / head_dim,
                             head_dim, pairs, interleaved, call.row(y, row));
         }
       });
}

// Stages the rows, then convolves: a thread's channels need nothing of another's.
void Lowering::short_conv(const Op& op) {
  const Buffer z = buffer(op.inputs[0]);
  const auto state = static_cast<size_t>(op.state);
  const int64_t kernel = weight(op, 0).columns;
  CHECK_LE(kernel, program::kMaxConvTaps);
  const float* taps_weight = weights_.taps(weight(op, 0));
  const float* bias = optional_vector(op, 1);
  const Buffer y = define(op.outputs[0], z.rows);
  const auto convolve_row = [=](const Call& call, int64_t row, const ChannelRange& range) {
    const std::span<const int32_t> path = call.paths.of(row);
    std::array<const float*, program::kMaxConvTaps> taps;
    for (int64_t tap = 0; tap < kernel; ++tap) {
      const int64_t at =
          static_cast<int64_t>(path.size()) - kernel + tap;  // on the path; before it, in the state
      const float* source = at >= 0
                                ? call.state.staged_conv_row(state, path[static_cast<size_t>(at)])
                                : call.state.conv_row(state, kernel - 1 + at);
      taps[static_cast<size_t>(tap)] = source + range.first;
    }
    call.kernels.short_conv(taps.data(), kernel, taps_weight + range.first, z.channels,
                            bias == nullptr ? nullptr : bias + range.first, range.count,
                            call.row(y, row) + range.first);
  };
  emit({By::kPanels, z.rows, panels_of(z.channels)},
       {reads_own(z), resource(Resource::kStagedConv, state, true, true), writes_own(y)},
       [=](const Call& call, const Share& share) {
         const ChannelRange range(share, z.channels);
         for (int64_t row = 0; row < call.inputs.row_count; ++row) {
           std::copy_n(call.row(z, row) + range.first, range.count,
                       call.state.staged_conv_row(state, row) + range.first);
         }
         for (int64_t row = 0; row < call.inputs.row_count; ++row) convolve_row(call, row, range);
       });
}

void Lowering::kv_write(const Op& op) {
  const Buffer k = buffer(op.inputs[0]), v = buffer(op.inputs[1]);
  const auto state = static_cast<size_t>(op.state);
  if (kv_bits_ == 8) {
    emit({By::kRows, k.rows, 0},
         {reads_own(k), reads_own(v), resource(Resource::kStagedKv, state, true, true)},
         [=](const Call& call, const Share& share) {
           for (int64_t row = share.first; row < share.last; ++row)
             call.state.staged_kv8(state).write_position(row, call.row(k, row), call.row(v, row));
         });
    return;
  }
  want_scratch(k.channels);  // two rows of halves
  emit({By::kRows, k.rows, 0},
       {reads_own(k), reads_own(v), resource(Resource::kStagedKv, state, true, true)},
       [=](const Call& call, const Share& share) {
         auto* halves = reinterpret_cast<uint16_t*>(call.scratch(share.thread));
         for (int64_t row = share.first; row < share.last; ++row) {
           call.kernels.to_half(call.row(k, row), k.channels, halves);
           call.kernels.to_half(call.row(v, row), k.channels, halves + k.channels);
           call.state.staged_kv(state).write_position(row, halves, halves + k.channels);
         }
       });
}

// Items are queries in the order (KV head, row, head of the group), cut into tiles that share a KV
// head.
void Lowering::attention(const Op& op) {
  const Buffer q = buffer(op.inputs[0]);
  const AttentionShape shape{.state = static_cast<size_t>(op.state),
                             .heads = op.integer("heads"),
                             .kv_heads = op.integer("kv_heads"),
                             .head_dim = op.integer("head_dim"),
                             .scale = static_cast<float>(op.number("scale"))};
  const Buffer y = define(op.outputs[0], q.rows);
  const RunQueries run = kv_bits_ == 8 ? int8_attention(shape, q, y) : half_attention(shape, q, y);
  emit({By::kQueries, q.rows, shape.heads, shape.kv_heads},
       {reads_own(q), resource(Resource::kStagedKv, shape.state, false, false), writes_own(y)},
       [=](const Call& call, const Share& share) {
         const int64_t queries_of_kv_head = call.inputs.row_count * shape.group();
         for (int64_t item = share.first; item < share.last;) {
           const int64_t kv_head = item / queries_of_kv_head, first = item % queries_of_kv_head;
           const int64_t last = std::min(queries_of_kv_head, first + share.last - item);
           run(call, kv_head, first, last, share.thread);
           item += last - first;
         }
       });
  // Every portion reads K and V of its heads; in 8 bits it even arranges them first.
  const int64_t rows = few_rows_ ? 1 : program_.rows;
  const int64_t tiles = std::lcm(shape.group(), kAttentionQueries);
  share_out(few_rows_ || kv_bits_ == 8 ? rows * shape.group() : tiles, 0);
}

// Query `item` of a KV head.
AttentionQuery query_of(const Call& call, const AttentionShape& shape, const Buffer& q,
                        const Buffer& y, int64_t kv_head, int64_t item) {
  const int64_t row = item / shape.group();
  const int64_t channel = (kv_head * shape.group() + item % shape.group()) * shape.head_dim;
  const std::span<const int32_t> path = call.paths.of(row);
  return {.query = call.row(q, row) + channel,
          .output = call.row(y, row) + channel,
          .path = path.data(),
          .path_length = static_cast<int64_t>(path.size())};
}

Lowering::RunQueries Lowering::half_attention(const AttentionShape& shape, const Buffer& q,
                                              const Buffer& y) {
  want_scratch(
      attention_scratch_floats(kAttentionQueries, kv_rows_, program_.rows, shape.head_dim));
  return [=](const Call& call, int64_t kv_head, int64_t first, int64_t last, int thread) {
    const KeyValueRows& committed = call.state.committed_kv(shape.state);
    const KeyValueRows& window = call.state.staged_kv(shape.state);
    std::array<AttentionQuery, kAttentionQueries> queries;
    for (int64_t end = first; first < last; first = end) {
      for (end = first; end < std::min(last, first + kAttentionQueries); ++end)
        queries[static_cast<size_t>(end - first)] = query_of(call, shape, q, y, kv_head, end);
      call.kernels.attention({.queries = {queries.data(), static_cast<size_t>(end - first)},
                              .head_dim = shape.head_dim,
                              .scale = shape.scale,
                              .keys = committed.keys(kv_head),
                              .values = committed.values(kv_head),
                              .committed = call.state.committed_length(),
                              .window_keys = window.keys(kv_head),
                              .window_values = window.values(kv_head),
                              .scratch = call.scratch(thread)});
    }
  };
}

// The end of the queries from `first` on, before `last`, whose rows are each the parent of the next.
int64_t end_of_run(std::span<const int32_t> parents, int64_t group, int64_t first, int64_t last) {
  int64_t row = first / group;
  const int64_t last_row = (last - 1) / group;
  while (row < last_row && parents[static_cast<size_t>(row + 1)] == row) ++row;
  return std::min(last, (row + 1) * group);
}

// Runs of rows of which each is the parent of the next share their assembled chunks: all rows of a chain.
Lowering::RunQueries Lowering::int8_attention(const AttentionShape& shape, const Buffer& q,
                                              const Buffer& y) {
  const Int8Scratch sizes(kv_rows_, program_.rows, shape.head_dim);
  static_assert(kInt8Queries <= kThreadOperandRows);
  want_scratch(sizes.floats + sizes.chunk_bytes / int64_t{sizeof(float)});
  const size_t query_slot = slots_.slot({shape.head_dim, 2, ActivationSlots::Use::kAttention});
  const size_t weight_slot = slots_.slot({kChunkPositions, 2, ActivationSlots::Use::kAttention});
  return [=](const Call& call, int64_t kv_head, int64_t first, int64_t last, int thread) {
    const Int8Head head{.head = kv_head,
                        .head_dim = shape.head_dim,
                        .scale = shape.scale,
                        .kv = call.state.committed_kv8(shape.state),
                        .committed = call.state.committed_length(),
                        .window = call.state.staged_kv8(shape.state)};
    float* scratch = call.scratch(thread);
    auto* chunks = reinterpret_cast<std::byte*>(scratch + sizes.floats);
    std::array<AttentionQuery, kInt8Queries> queries;
    while (first < last) {
      const int64_t run_end = end_of_run(call.inputs.parents, shape.group(), first, last);
      assemble_chunks(head, call.paths.of((run_end - 1) / shape.group()), chunks);
      for (int64_t end = first; first < run_end; first = end) {
        for (end = first; end < std::min(run_end, first + kInt8Queries); ++end)
          queries[static_cast<size_t>(end - first)] = query_of(call, shape, q, y, kv_head, end);
        attend_int8(call.kernels, head, {queries.data(), static_cast<size_t>(end - first)}, chunks,
                    call.thread_operand(query_slot, thread),
                    call.thread_operand(weight_slot, thread), sizes, scratch);
      }
    }
  };
}

// Elementwise ops are divided by channels, as the linears in front of them are, and need no barrier
// there.
void Lowering::by_channels(const Op& op, void (*apply)(const Call&, const float*, const float*,
                                                       int64_t, float*)) {
  const Buffer a = buffer(op.inputs[0]), b = buffer(op.inputs[op.inputs.size() - 1]);
  const Buffer y = define(op.outputs[0], a.rows);
  emit({By::kPanels, a.rows, panels_of(a.channels)}, {reads_own(a), reads_own(b), writes_own(y)},
       [=](const Call& call, const Share& share) {
         const ChannelRange range(share, a.channels);
         for (int64_t row = 0; row < call.row_count(a.rows); ++row) {
           apply(call, call.row(a, row) + range.first, call.row(b, row) + range.first, range.count,
                 call.row(y, row) + range.first);
         }
       });
}

void Lowering::gather_rows(const Op& op) {
  const Buffer x = buffer(op.inputs[0]);
  const Buffer y = define(op.outputs[0], RowSet::kSelected);
  emit({By::kRows, y.rows, 0}, {reads_all(x), writes_own(y)},
       [=](const Call& call, const Share& share) {
         for (int64_t i = share.first; i < share.last; ++i) {
           std::copy_n(call.row(x, call.inputs.selected[static_cast<size_t>(i)]), x.channels,
                       call.row(y, i));
         }
       });
}

void Lowering::mean_pool(const Op& op) {
  const Buffer x = buffer(op.inputs[0]);
  const Buffer y = define(op.outputs[0], RowSet::kOne);
  emit({By::kPanels, y.rows, panels_of(y.channels)}, {reads_own(x), writes_own(y)},
       [=](const Call& call, const Share& share) {
         const ChannelRange range(share, y.channels);
         const int64_t rows = call.row_count(x.rows);
         float* mean = call.row(y, 0) + range.first;
         std::fill_n(mean, range.count, 0.0f);
         for (int64_t row = 0; row < rows; ++row) {
           call.kernels.add(mean, call.row(x, row) + range.first, range.count, mean);
         }
         for (int64_t c = 0; c < range.count; ++c) mean[c] /= static_cast<float>(rows);
       });
}

// ---- heads ----

// Largest of values[0, count) and the lowest index that has it; NaN never wins, so the index is
// always in range.
struct Largest {
  float value = -std::numeric_limits<float>::infinity();
  int32_t index = 0;

  void take(const float* values, int64_t count, int64_t first_index) {
    std::array<float, kLanes> lanes;
    lanes.fill(value);
    int64_t c = 0;
    for (; c + kLanes <= count; c += kLanes) {
      for (int64_t i = 0; i < kLanes; ++i)
        lanes[i] = values[c + i] > lanes[i] ? values[c + i] : lanes[i];
    }
    float found = *std::max_element(lanes.begin(), lanes.end());
    for (; c < count; ++c) found = values[c] > found ? values[c] : found;
    if (!(found > value)) return;
    value = found;
    index = static_cast<int32_t>(first_index + (std::find(values, values + count, found) - values));
  }
};

void Lowering::head_argmax(const Op& op) {
  const PackedLinear& matrix = weights_.matrix(weight(op, 0));
  const size_t slot = quantized(op.inputs[0], matrix);
  const RowSet row_set = buffer(op.inputs[0]).rows;
  const int64_t subrange = op.integer("subrange"), vocab = matrix.rows();
  plan_.vocab = vocab;
  plan_.subranges = (vocab + subrange - 1) / subrange;
  want_scratch(capacity(row_set) * kHeadTilePanels * kPanelOutputs);
  const int64_t subranges = plan_.subranges;
  // Logits of a few panels live in the thread's scratch only as long as it takes to compare them.
  const auto search = [=, &matrix](const Call& call, int64_t index, int thread) {
    const int64_t rows = call.row_count(row_set);
    const int64_t begin = index * subrange, end = std::min(begin + subrange, vocab);
    for (int64_t row = 0; row < rows; ++row) {
      const auto at = static_cast<size_t>(row * subranges + index);
      call.outputs.max_values[at] = Largest{}.value;
      call.outputs.max_indices[at] = Largest{}.index;
    }
    for (int64_t panel = begin / kPanelOutputs; panel < panels_of(end); panel += kHeadTilePanels) {
      const int64_t last_panel = std::min(panel + kHeadTilePanels, panels_of(end));
      const int64_t stride = (last_panel - panel) * kPanelOutputs;
      float* tile = call.scratch(thread);
      // The kernel writes output n at y + n: the tile begins at its first panel.
      call.kernels.linear(matrix, call.operand(slot, thread), rows, panel, last_panel,
                          tile - panel * kPanelOutputs, stride);
      const int64_t first = std::max(begin, panel * kPanelOutputs),
                    last = std::min(end, last_panel * kPanelOutputs);
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<size_t>(row * subranges + index);
        Largest best{call.outputs.max_values[at], call.outputs.max_indices[at]};
        best.take(tile + row * stride + first - panel * kPanelOutputs, last - first, first - begin);
        call.outputs.max_values[at] = best.value;
        call.outputs.max_indices[at] = best.index;
      }
    }
  };
  emit({By::kSubranges, row_set, subranges}, reads_operand(slot),
       [=](const Call& call, const Share& share) {
         for (int64_t index = share.first; index < share.last; ++index)
           search(call, index, share.thread);
       });
  share_out(1, matrix.layout().panel_bytes * panels_of(subrange));
}

void Lowering::head_logits(const Op& op) {
  const PackedLinear& matrix = weights_.matrix(weight(op, 0));
  const size_t slot = quantized(op.inputs[0], matrix);
  const RowSet row_set = buffer(op.inputs[0]).rows;
  plan_.vocab = matrix.rows();
  emit({By::kPanels, row_set, matrix.panel_count()}, reads_operand(slot),
       [=, &matrix](const Call& call, const Share& share) {
         call.kernels.linear(matrix, call.operand(slot, share.thread), call.row_count(row_set),
                             share.first, share.last, call.outputs.logits.data(), matrix.rows());
       });
  share_out(kPortionPanels, matrix.layout().panel_bytes);
}

// Hidden states that somebody outside wants are copied out as soon as they are there, each to its
// place among the taps.
void Lowering::tap(ValueId value) {
  const Buffer x = buffer(value);
  int64_t first_channel = 0;
  for (const ValueId tapped : program_.taps()) {
    if (tapped == value) break;
    first_channel += program_.value(tapped).shape.channels;
  }
  emit({By::kPanels, x.rows, panels_of(x.channels)}, {reads_own(x)},
       [=, width = plan_.tapped](const Call& call, const Share& share) {
         const ChannelRange range(share, x.channels);
         for (int64_t row = 0; row < call.row_count(x.rows); ++row) {
           std::copy_n(call.row(x, row) + range.first, range.count,
                       call.outputs.taps.data() + row * width + first_channel + range.first);
         }
       });
}

// ---- all of it ----

// Ops on states and positions belong to the rows of the window; two operands have the same rows.
Status Lowering::check_rows(const Op& op) const {
  const RowSet rows = buffer(op.inputs[0]).rows;
  const bool needs_window = op.kind == OpKind::kRope || op.kind == OpKind::kShortConv ||
                            op.kind == OpKind::kKvWrite || op.kind == OpKind::kAttention ||
                            op.kind == OpKind::kGatherRows;
  const bool has_two = op.kind == OpKind::kAdd || op.kind == OpKind::kMul ||
                       op.kind == OpKind::kGatedSilu || op.kind == OpKind::kKvWrite;
  const bool fits =
      (!needs_window || rows == RowSet::kWindow) && (!has_two || buffer(op.inputs[1]).rows == rows);
  if (fits) return Ok{};
  return Error{
      .what = fmt::format("op {} of function '{}' mixes rows of the window and of the head",
                          op_index_, program_.name),
      .expected = "gather_rows only in front of the head",
      .actual = "an op of the layers behind it",
      .fix = "Gather the selected rows last."};
}

Status Lowering::lower(const Op& op) {
  RETURN_IF_ERROR(check_rows(op));
  switch (op.kind) {
    case OpKind::kLinear:
      linear(op);
      break;
    case OpKind::kRmsNorm:
      rms_norm(op);
      break;
    case OpKind::kLayerNorm:
      layer_norm(op);
      break;
    case OpKind::kRope:
      rope(op);
      break;
    case OpKind::kShortConv:
      short_conv(op);
      break;
    case OpKind::kKvWrite:
      kv_write(op);
      break;
    case OpKind::kAttention:
      attention(op);
      break;
    case OpKind::kGatherRows:
      gather_rows(op);
      break;
    case OpKind::kMeanPool:
      mean_pool(op);
      break;
    case OpKind::kHeadArgmax:
      head_argmax(op);
      break;
    case OpKind::kHeadLogits:
      head_logits(op);
      break;
    case OpKind::kGatedSilu:
      by_channels(op, [](const Call& call, const float* a, const float* b, int64_t count,
                         float* y) { call.kernels.gated_silu(a, b, count, y); });
      break;
    case OpKind::kGelu:
      by_channels(
          op, op.text("approximation") == "tanh"
                  ? [](const Call& call, const float* a, const float*, int64_t count,
                       float* y) { call.kernels.gelu(a, count, true, y); }
                  : [](const Call& call, const float* a, const float*, int64_t count, float* y) {
                      call.kernels.gelu(a, count, false, y);
                    });
      break;
    case OpKind::kAdd:
      by_channels(op, [](const Call& call, const float* a, const float* b, int64_t count,
                         float* y) { call.kernels.add(a, b, count, y); });
      break;
    case OpKind::kMul:
      by_channels(op, [](const Call& call, const float* a, const float* b, int64_t count,
                         float* y) { call.kernels.mul(a, b, count, y); });
      break;
  }
  return Ok{};
}

Result<Plan> Lowering::run() {
  plan_.rows = program_.rows;
  plan_.selected = program_.selected;
  plan_.head = program_.head;
  for (const ValueId value : program_.taps()) plan_.tapped += program_.value(value).shape.channels;
  buffers_.resize(program_.values.size());
  find_last_uses();
  for (const ValueId input : program_.inputs) {
    if (program_.value(input).dtype == Encoding::kF32) embeddings(input);
  }
  for (const Op& op : program_.ops) {
    RETURN_IF_ERROR(lower(op));
    for (const ValueId output : op.outputs) {
      if (std::ranges::find(program_.taps(), output) != program_.taps().end()) tap(output);
    }
    ++op_index_;
  }
  plan_.intervals = make_intervals(std::move(steps_));
  plan_.arena_floats = arena_.size();
  return std::move(plan_);
}

}  // namespace

Result<Plan> make_plan(const Program& program, const WeightStore& weights, int64_t kv_rows,
                       int planes, int kv_bits, PlanKind kind, ActivationSlots& slots) {
  return Lowering(program, weights, kv_rows, planes, kv_bits, kind, slots).run();
}

}  // namespace espalier::units::cpu
