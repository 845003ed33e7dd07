// What `bench model` measures of a model: kinds of work, one table, each a state of its own and a
// function that does it once. "prefill:512" in --work is the kind and its amount. One caller at a
// time; refers to its engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/model_floor.h"
#include "espalier/base/result.h"
#include "espalier/decode/window.h"
#include "espalier/engine/engine.h"
#include "espalier/engine/executable_target.h"

namespace espalier::bench {

inline constexpr int64_t kTextPositions =
    32;  // before calls of verify and batch; engines.py has it of the peers
inline constexpr int64_t kDecodeTokens = 16;  // of a sample of decode

enum class WorkKind : uint8_t { kPrefill, kGenerate, kDecode, kCall, kVerify, kBatch };

struct Work {
  WorkKind kind = WorkKind::kPrefill;
  int64_t amount = 0;
};
Result<Work> parse_work(const std::string& text);
std::string name_of(const Work& work);  // "prefill:512"
std::string work_help();                // a line for each kind

class WorkRun {
 public:
  // Fails where the context or the window is too small, or there is no memory. `rounds` samples
  // will be taken; decode starts so far below its context that the last one ends at it.
  static Result<std::unique_ptr<WorkRun>> create(const engine::Engine& engine, const Work& work,
                                                 int64_t rounds);
  const Work& work() const { return work_; }
  Result<double> sample_ms();                      // doing it once
  double floor_ms(const ModelFloor& floor) const;  // of that
  double tokens() const;                           // of a sample, for tokens/s
  bool is_rate() const;                            // reported as tokens/s, else as ms

 private:
  WorkRun(const engine::Engine& engine, const Work& work,
          std::unique_ptr<engine::ExecutableTarget> target);
  Status prepare(int64_t rounds);
  void run_tokens(int64_t count);
  void decode(int64_t count);
  double time_calls(const decode::Window& window);
  double chain_floor_ms(const ModelFloor& floor) const;
  double decode_floor_ms(const ModelFloor& floor, int64_t count, int64_t last) const;

  const Work work_;
  std::unique_ptr<engine::ExecutableTarget> target_;
  decode::ChainWindows windows_;
  std::vector<TokenId> tokens_;  // what it runs; ids without meaning
  std::vector<int32_t> roots_;   // [amount] of batch: every row continues the text
  std::vector<int32_t> rows_;    // [amount] of batch: every row has its head computed
};

}  // namespace espalier::bench
