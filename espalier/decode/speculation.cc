#include "espalier/decode/speculation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "espalier/base/clock.h"

namespace espalier::decode {
namespace {

constexpr int64_t kDraftTokens = 16;  // of a chain or tree whose size nobody chose
constexpr double kLeastGain = 1.03;   // over a call of one row, for a tree to be tried
constexpr int64_t kPlainEvery = 256;  // cycles, at least one of them of one row
constexpr double kNoticed = 0.02;     // of a call: guessing that takes longer has to pay for it
constexpr int64_t kJudged = 4;        // cycles before guessing is judged
constexpr double kFading = 0.9;       // of what a cycle weighs, with each later one
constexpr int64_t kFirstRest = 32, kLongestRest = 256;  // cycles
constexpr size_t kOffersPerNode = 16;                   // room in the queue

}  // namespace

double SpeculationStatistics::tokens_per_cycle() const {
  return cycles == 0 ? 0 : 1 + static_cast<double>(accepted_nodes) / static_cast<double>(cycles);
}

int64_t Speculator::max_row_count(const SpeculationOptions& options, int64_t window_rows) {
  if (options.mode == SpeculationMode::kOff) return 1;
  if (options.draft_tokens > 0) return std::min(options.draft_tokens + 1, window_rows);
  return options.mode == SpeculationMode::kAuto ? window_rows
                                                : std::min(kDraftTokens + 1, window_rows);
}

Speculator::Speculator(std::vector<std::unique_ptr<Drafter>> drafters, int64_t window_rows)
    : drafters_(std::move(drafters)),
      tree_(window_rows),
      offers_(kOffersPerNode * static_cast<size_t>(window_rows)),
      costs_(window_rows) {
  for (const auto& drafter : drafters_) drafter_list_.push_back(drafter.get());
}

Status Speculator::begin(const SpeculationOptions& options, std::span<const TokenId> prompt,
                         int64_t capacity) {
  options_ = options;
  statistics_ = {};
  tree_.reset(0);
  row_count_ = 1;
  if (options.mode == SpeculationMode::kOff) return Ok{};
  for (const auto& drafter : drafters_) RETURN_IF_ERROR(drafter->begin(prompt, capacity));
  return Ok{};
}

void Speculator::observe(const Target& target, std::span<const int32_t> rows) {
  if (options_.mode == SpeculationMode::kOff) return;
  for (const auto& drafter : drafters_) drafter->observe(target, rows);
}

int64_t Speculator::observed_length() const {
  int64_t length = std::numeric_limits<int64_t>::max();
  for (const auto& drafter : drafters_) length = std::min(length, drafter->observed_length());
  return length;
}

Status Speculator::truncate(int64_t length) {
  for (const auto& drafter : drafters_) RETURN_IF_ERROR(drafter->truncate(length));
  return Ok{};
}

void Speculator::append(TokenId token) {
  last_token_ = token;
  if (options_.mode == SpeculationMode::kOff) return;
  for (const auto& drafter : drafters_) drafter->append(token);
}

const DraftTree& Speculator::propose(int64_t depth, int64_t rows) {
  const Stopwatch watch;
  tree_.reset(last_token_);
  const bool guesses = options_.mode != SpeculationMode::kOff && !is_resting() && !is_measuring();
  if (guesses) {
    const auto shape =
        options_.mode == SpeculationMode::kChain ? TreeShape::kChain : TreeShape::kTree;
    const int64_t most = std::min(rows, max_row_count(options_, tree_.capacity()));
    grow_tree(drafter_list_, shape, most - 1, depth, offers_, tree_);
  }
  row_count_ = options_.mode == SpeculationMode::kAuto ? best_row_count(watch) : tree_.size();
  proposal_ms_ = watch.elapsed_ms();
  statistics_.draft_ms += proposal_ms_;
  return tree_;
}

int64_t Speculator::depth() const {
  return *std::ranges::max_element(tree_.depths().first(static_cast<size_t>(row_count_)));
}

// What a call of one row costs is what guessing is compared with.
bool Speculator::is_measuring() const {
  return options_.mode == SpeculationMode::kAuto &&
         (!costs_.is_measured(1) || cycles_since_plain_ >= kPlainEvery);
}

// The nodes stand in the order of their probabilities, so every beginning of the tree is the best
// tree of its size.
int64_t Speculator::best_row_count(const Stopwatch& watch) const {
  const double drafted_ms = watch.elapsed_ms();  // spent already, whatever is chosen
  double best_rate = kLeastGain / (drafted_ms + costs_.call_ms(1));
  int64_t best = 1;
  double expected = 1;
  for (int32_t node = 1; node < tree_.size(); ++node) {
    expected += std::exp(static_cast<double>(tree_.log_probabilities()[static_cast<size_t>(node)]));
    const double rate = expected / (drafted_ms + costs_.call_ms(node + 1));
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = node + 1;
  }
  return best;
}

void Speculator::keep_pace(double tokens, double ms) {
  if (pace_.rest > 0) {
    if (--pace_.rest == 0) pace_ = {.next_rest = pace_.next_rest};
    return;
  }
  pace_.tokens = kFading * pace_.tokens + tokens;
  pace_.ms = kFading * pace_.ms + ms;
  if (++pace_.cycles < kJudged) return;
  if (pace_.tokens * costs_.call_ms(1) >= pace_.ms) {
    pace_.next_rest = kFirstRest;
    return;
  }
  pace_.rest = std::max(pace_.next_rest, kFirstRest);
  pace_.next_rest = std::min(2 * pace_.rest, kLongestRest);
}

void Speculator::learn(std::span<const TokenId> chosen, double verify_ms, double host_ms) {
  costs_.learn(row_count_, verify_ms);
  statistics_.verify_ms += verify_ms;
  statistics_.host_ms += host_ms;
  ++statistics_.cycles;
  statistics_.draft_nodes += row_count_ - 1;
  cycles_since_plain_ = row_count_ == 1 ? 0 : cycles_since_plain_ + 1;
  // A cycle without guesses, and without much time spent on them, says nothing about guessing.
  const bool has_guessed = row_count_ > 1 || proposal_ms_ > kNoticed * costs_.call_ms(1);
  if (options_.mode == SpeculationMode::kAuto && (has_guessed || is_resting())) {
    keep_pace(static_cast<double>(chosen.size()), verify_ms + proposal_ms_);
  }
  // The last token chosen has no row on the path, whether it was guessed or not.
  const size_t accepted = chosen.empty() ? 0 : chosen.size() - 1;
  int32_t parent = kRoot;
  for (const TokenId token : chosen) {
    int32_t next = kNoNode;
    for (int32_t node = parent + 1; node < tree_.size(); ++node) {
      if (tree_.parents()[static_cast<size_t>(node)] != parent) continue;
      const bool is_right = tree_.tokens()[static_cast<size_t>(node)] == token;
      if (is_right) next = node;
      const Proposer& proposer = tree_.proposers()[static_cast<size_t>(node)];
      drafters_[static_cast<size_t>(proposer.drafter)]->learn(proposer.estimate, is_right);
    }
    if (next == kNoNode) break;
    parent = next;
  }
  statistics_.accepted_nodes += static_cast<int64_t>(accepted);
  ++statistics_.accepted_depths[std::min(accepted, SpeculationStatistics::kDepths - 1)];
}

std::string Speculator::explain() const {
  if (statistics_.cycles == 0) return "no guesses: there was no cycle";
  if (is_resting()) {
    return fmt::format("none, for {} cycles more: guessing took longer than it gained", pace_.rest);
  }
  double expected = 1;
  for (int32_t node = 1; node < row_count_; ++node) {
    expected += std::exp(static_cast<double>(tree_.log_probabilities()[static_cast<size_t>(node)]));
  }
  return fmt::format(
      "{} of {} guesses: {:.2f} tokens expected of {} rows in {:.2f} ms; one row takes {:.2f} ms",
      row_count_ - 1, tree_.size() - 1, expected, row_count_, costs_.call_ms(row_count_),
      costs_.call_ms(1));
}

}  // namespace espalier::decode
