// Speculator: before each call of the target it grows a tree of guesses under the last token, and
// afterwards learns which were right. Which tree is never a question of correctness: the walk in
// decode/step.h takes from it only what the target would have chosen anyway.
//
// One caller at a time. Nothing allocates between begin() and the end of an answer, but for drafters
// that grow into the next bucket.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/clock.h"
#include "espalier/base/result.h"
#include "espalier/decode/call_costs.h"
#include "espalier/decode/draft_tree.h"
#include "espalier/decode/drafter.h"

namespace espalier::decode {

enum class SpeculationMode : uint8_t {
  kOff,
  kChain,  // one path of `draft_tokens`
  kTree,   // the best tree of `draft_tokens`
  kAuto,   // the tree, up to `draft_tokens`, whose expected tokens a millisecond are the most
};

struct SpeculationOptions {
  SpeculationMode mode = SpeculationMode::kOff;
  int64_t draft_tokens = 0;  // nodes besides the root; 0: 16, or with kAuto what the window holds
};

// Sums over the cycles of an answer. A cycle is one call of the target for new tokens.
struct SpeculationStatistics {
  static constexpr size_t kDepths = 65;
  int64_t cycles = 0;
  int64_t draft_nodes = 0;
  int64_t accepted_nodes = 0;
  std::array<int64_t, kDepths> accepted_depths{};  // cycles by accepted nodes
  double verify_ms = 0;                            // in the target
  double draft_ms = 0;                             // growing trees
  double host_ms = 0;                              // choosing tokens, the receiver included
  double tokens_per_cycle() const;                 // accepted and bonus tokens; 0 without cycles
};

class Speculator {
 public:
  // Drafters are asked in this order. `window_rows` is that of the target.
  Speculator(std::vector<std::unique_ptr<Drafter>> drafters, int64_t window_rows);

  // A new answer to `prompt`, at most `capacity` tokens in all.
  Status begin(const SpeculationOptions& options, std::span<const TokenId> prompt,
               int64_t capacity);
  // Rows of the target's last window have been committed (Drafter::observe).
  void observe(const Target& target, std::span<const int32_t> rows);
  // Positions that all drafters have observed, and how they forget those behind `length`.
  int64_t observed_length() const;
  Status truncate(int64_t length);

  // A token has been chosen. The next tree hangs on it.
  void append(TokenId token);
  // The tree under the last token, of nodes at most `depth` below it. Its first row_count() nodes, at
  // most `rows`, are worth a call; depth() is that of the deepest of them.
  const DraftTree& propose(int64_t depth, int64_t rows);
  int64_t row_count() const { return row_count_; }
  int64_t depth() const;
  // Rows of a call at most, with these options.
  static int64_t max_row_count(const SpeculationOptions& options, int64_t window_rows);

  // After the call: the tokens chosen from its rows (append() has had them), and what call and choice
  // took.
  void learn(std::span<const TokenId> chosen, double verify_ms, double host_ms);

  const SpeculationStatistics& statistics() const { return statistics_; }
  const CallCosts& costs() const { return costs_; }
  CallCosts& costs() { return costs_; }
  // How the last tree's size came about, for people.
  std::string explain() const;

 private:
  // What guessing gave lately, against calls of one row; where it loses, it rests for some cycles, and
  // longer each time.
  struct Pace {
    double tokens = 0, ms = 0;  // of cycles that guessed, older ones fading
    int64_t cycles = 0;
    int64_t rest = 0;       // cycles until it guesses again
    int64_t next_rest = 0;  // how long it would rest now
  };
  bool is_resting() const { return options_.mode == SpeculationMode::kAuto && pace_.rest > 0; }
  bool is_measuring() const;
  void keep_pace(double tokens, double ms);
  int64_t best_row_count(const Stopwatch& watch) const;

  std::vector<std::unique_ptr<Drafter>> drafters_;
  std::vector<Drafter*> drafter_list_;
  SpeculationOptions options_;
  DraftTree tree_;
  OfferQueue offers_;
  CallCosts costs_;
  Pace pace_;
  double proposal_ms_ = 0;
  int64_t cycles_since_plain_ = 0;
  int64_t row_count_ = 1;
  TokenId last_token_ = 0;
  SpeculationStatistics statistics_;
};

}  // namespace espalier::decode
