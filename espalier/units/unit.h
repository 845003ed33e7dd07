// Unit: something that executes programs. Executable: the programs of one model, packed and planned
// on one unit. State: KV cache and convolution rows of one sequence on one unit.
//
// An Executable is immutable but owns scratch memory: calls of run() on one Executable, or on several
// that one Unit object has compiled, must not overlap. A State belongs to one Executable and one caller. run(), commit() and read_weight_rows()
// neither allocate nor fail. Whatever can fail (memory, threads, bytes of others) fails in
// compile(), create_state(), resize_state() or import_state(); truncate_state() fails where it
// cannot cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"

namespace espalier::units {

// How fp16, bf16 and fp32 checkpoints are computed; GGUF encodings always compute as stored.
enum class WeightMode : uint8_t { kInt8, kInt8Group64, kKeep };

// Positions of the largest bucket that units take: scores take up to 24 bytes a position and
// thread, which is 400 MB at this length. A configuration may promise more; then --context has to
// ask for less.
inline constexpr int64_t kMaxKvRows = int64_t{1} << 24;

inline Status check_kv_rows(const program::ProgramSet& programs) {
  for (const program::Program& function : programs.functions) {
    if (function.kv_rows <= kMaxKvRows) continue;
    return Error{.what = fmt::format("function '{}' is too large", function.name),
                 .expected = fmt::format("at most {} KV positions", kMaxKvRows),
                 .actual = fmt::format("{}", function.kv_rows),
                 .fix = "Choose a smaller context."};
  }
  return Ok{};
}

// Where packed weights are kept between loads (docs/architecture.md). Units that pack none, and
// weights that come from no file, leave it alone.
struct PackedCache {
  std::string folder = {};                  // "": they are not kept
  int64_t limit_bytes = int64_t{20} << 30;  // of the folder; beyond it the oldest files go
};

struct CompileOptions {
  int threads = 0;                         // 0: physical cores
  WeightMode weights = WeightMode::kInt8;  // int8 per output channel or per 64 of one, or as stored
  int activation_planes = 2;               // 2: 16-bit fixed point, 1: 8-bit
  int kv_bits = 16;          // of K and V in a state: fp16, or int8 with a scale a head
  std::string kernels = {};  // "" chooses the best present; or a name of kernel_names()
  PackedCache packed_cache = {};
};

// One call. Spans have the sizes of the function; only the first `row_count` rows are computed.
struct CallInputs {
  int64_t row_count = 0;               // 1..T
  std::span<const float> embeddings;   // [row_count, hidden]
  std::span<const int32_t> positions;  // [row_count] absolute position: committed length + depth
  // [row_count] window row of the parent, < own row; -1: the committed text. Ancestor mask and
  // convolution gather follow from it.
  std::span<const int32_t> parents;
  std::span<const int32_t> selected;  // rows that the head is computed for; may be empty (no head)
  // Every row sees every row of the call, later ones too: a drafter's block. It is a chain by its
  // parents, for positions, and is not committed.
  bool sees_whole_window = false;
};

// Written by run(); spans are the caller's. Only the spans of the function's head are used.
struct CallOutputs {
  std::span<float> max_values = {};     // [selected, subranges]
  std::span<int32_t> max_indices = {};  // [selected, subranges] index within the subrange
  std::span<float> logits = {};         // [selected, vocab]
  std::span<float> taps = {};           // [row_count, channels of all taps]: Program::taps()
};

struct Capabilities {
  int64_t kv_element_bytes = 0;    // of K and V in a state
  int64_t kv_scale_bytes = 0;      // beside them, for a position of all layers
  int64_t kv_write_alignment = 1;  // the unit writes KV in aligned blocks of so many positions
  int64_t max_rows = 0;            // largest window
};

struct MemoryUse {
  int64_t weight_bytes = 0;   // packed weights, wherever they lie (PackedReport)
  int64_t scratch_bytes = 0;  // activations and staging
};

// Where the weights that compile() has packed lie.
enum class PackedOrigin : uint8_t {
  kMemory,   // in memory of this process: packed by it, or not packed at all
  kWritten,  // in a file of the cache that this process has packed and mapped
  kCache,    // in a file of the cache that was there
};

struct PackedReport {
  PackedOrigin origin = PackedOrigin::kMemory;
  std::string path = {};                // of the file; "" in memory
  double elapsed_ms = 0;                // to find or to make them
  std::vector<std::string> notes = {};  // why a cache was of no use; nothing was lost but time
};

class State {
 public:
  virtual ~State() = default;
  virtual int64_t committed_length() const = 0;  // positions
  virtual int64_t kv_rows() const = 0;           // the bucket
  virtual int64_t byte_count() const = 0;
};

class Executable {
 public:
  virtual ~Executable() = default;

  virtual Result<std::unique_ptr<State>> create_state(int64_t kv_rows) = 0;
  // Moves a state into another bucket (at least as long as what is committed); content is kept.
  virtual Status resize_state(State& state, int64_t kv_rows) = 0;
  // Forgets everything after the first `length` positions; the whole length changes nothing. Where
  // the model has convolutions, the only other length is 0.
  virtual Status truncate_state(State& state, int64_t length) = 0;

  // Runs function `function` of the program set. Stages K, V and convolution rows; nothing is
  // committed.
  virtual void run(size_t function, const CallInputs& inputs, State& state,
                   const CallOutputs& outputs) = 0;
  // Keeps these window rows of the last run, in order (a path: each row the parent of the next).
  virtual void commit(State& state, std::span<const int32_t> path) = 0;

  // A state as bytes, self-describing (shapes, length, encoding); import checks all of it.
  virtual std::vector<std::byte> export_state(const State& state) const = 0;
  virtual Result<std::unique_ptr<State>> import_state(std::span<const std::byte> bytes) = 0;

  // Rows of a weight as the unit really computes with them, as fp32 [row_count, columns].
  // Serves the embedding lookup (no allocation) and `espalier dump`. `tensor` is a checkpoint name.
  virtual int64_t weight_index(std::string_view tensor) const = 0;  // -1: not part of the programs
  virtual void read_weight_rows(int64_t weight_index, int64_t first_row, int64_t row_count,
                                std::span<float> out) const = 0;

  virtual Capabilities capabilities() const = 0;
  virtual MemoryUse memory_use() const = 0;
  virtual const PackedReport& packed_report() const = 0;
  // One line per kind of op: where it runs and with which kernel. For `info` and `doctor`.
  virtual std::vector<std::string> placement_report() const = 0;
};

class Unit {
 public:
  virtual ~Unit() = default;
  virtual std::string_view name() const = 0;
  // Kernel sets that this machine can run, best first; the first is the default.
  virtual std::vector<std::string> kernel_names() const = 0;
  // Packs weights, plans memory, picks kernels. `embedding_tensor` is packed and readable through
  // read_weight_rows even where no program reads it.
  virtual Result<std::unique_ptr<Executable>> compile(program::ProgramSet programs,
                                                      const Weights& weights,
                                                      const std::string& embedding_tensor,
                                                      const CompileOptions& options) = 0;
};

}  // namespace espalier::units
