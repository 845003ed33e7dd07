#include "espalier/engine/dspark_drafter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

#include "espalier/base/check.h"
#include "espalier/decode/softmax.h"

namespace espalier::engine {
namespace {

constexpr float kTaken = -std::numeric_limits<float>::infinity();

size_t index(int64_t row, int64_t columns) { return static_cast<size_t>(row * columns); }

}  // namespace

Result<std::unique_ptr<DSparkDrafter>> DSparkDrafter::create(const Engine& engine,
                                                             int64_t max_nodes) try {
  const DraftNetwork& network = *engine.draft_network();
  ASSIGN_OR_RETURN(std::unique_ptr<units::State> state,
                   network.executable().create_state(network.buckets().front()));
  return std::unique_ptr<DSparkDrafter>(new DSparkDrafter(engine, std::move(state), max_nodes));
} catch (const std::bad_alloc&) {
  return out_of_memory_error("no memory for a drafter's session", {},
                             "Close other programs, or use --speculate off.");
}

DSparkDrafter::DSparkDrafter(const Engine& engine, std::unique_ptr<units::State> state,
                             int64_t max_nodes)
    : engine_(engine), network_(*engine.draft_network()), state_(std::move(state)) {
  const models::DSpark& model = network_.model();
  candidate_count_ = std::min(kCandidates, model.draft_rows);
  embedding_index_ = engine.executable().weight_index(engine.model().embedding_tensor);
  tap_width_ = static_cast<int64_t>(model.target_layers.size()) * model.hidden_size;
  pending_taps_.resize(index(network_.window(), tap_width_));
  const int64_t most_rows = std::max(network_.window(), model.block_size);
  chain_.resize(static_cast<size_t>(most_rows) + 1);
  std::iota(chain_.begin(), chain_.end(), -1);
  positions_.resize(static_cast<size_t>(most_rows));
  embeddings_.resize(index(model.block_size, model.hidden_size));
  for (int64_t row = 1; row < model.block_size; ++row) {
    engine.executable().read_weight_rows(
        embedding_index_, model.mask_token, 1,
        std::span(embeddings_).subspan(index(row, model.hidden_size), index(1, model.hidden_size)));
  }
  logits_.resize(index(model.block_size, model.draft_rows));
  sorted_.resize(static_cast<size_t>(model.draft_rows));
  slot_logits_.resize(index(model.block_size, candidate_count_));
  slot_w2_.resize(index(model.block_size * model.markov_rank, candidate_count_));
  exponentials_.resize(static_cast<size_t>(candidate_count_));
  candidates_.resize(index(model.block_size, candidate_count_));
  has_candidates_.resize(static_cast<size_t>(model.block_size));
  children_.reserve(static_cast<size_t>(max_nodes));
  scores_.resize(index(max_nodes, candidate_count_));
}

int64_t DSparkDrafter::observed_length() const {
  return state_->committed_length() + pending_rows_;
}

Status DSparkDrafter::truncate(int64_t length) {
  failed_ = false;
  if (length >= observed_length()) return Ok{};
  const int64_t in_state = std::min(length, state_->committed_length());
  pending_rows_ = length - in_state;
  return network_.executable().truncate_state(*state_, in_state);
}

Status DSparkDrafter::begin(std::span<const TokenId> text, int64_t) {
  text_length_ = static_cast<int64_t>(text.size());
  return Ok{};
}

void DSparkDrafter::append(TokenId token) {
  ++text_length_;
  last_token_ = token;
}

void DSparkDrafter::observe(const decode::Target& target, std::span<const int32_t> rows) {
  for (const int32_t row : rows) {
    if (failed_) return;
    if (pending_rows_ == network_.window() && !run_context()) return;
    const auto taps = target.taps(row);
    CHECK_EQ(static_cast<int64_t>(taps.size()), tap_width_);
    std::ranges::copy(taps, pending_taps_.begin() +
                                static_cast<std::ptrdiff_t>(index(pending_rows_, tap_width_)));
    ++pending_rows_;
  }
}

// Makes context rows of all that are pending; whether there was memory for it.
bool DSparkDrafter::run_context() {
  if (pending_rows_ == 0) return true;
  const int64_t first = state_->committed_length();
  const auto& buckets = network_.buckets();
  const auto bucket = std::ranges::lower_bound(buckets, first + pending_rows_);
  failed_ = bucket == buckets.end() || (*bucket > state_->kv_rows() &&
                                        !network_.executable().resize_state(*state_, *bucket).ok());
  if (failed_) return false;
  bucket_ = static_cast<size_t>(std::ranges::find(buckets, state_->kv_rows()) - buckets.begin());
  const auto rows = static_cast<size_t>(pending_rows_);
  std::iota(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(rows),
            static_cast<int32_t>(first));
  const units::CallInputs inputs{
      .row_count = pending_rows_,
      .embeddings = std::span(pending_taps_).first(index(pending_rows_, tap_width_)),
      .positions = std::span(positions_).first(rows),
      .parents = std::span(chain_).first(rows),
      .selected = {}};
  network_.executable().run(network_.context_function(bucket_), inputs, *state_, {});
  network_.executable().commit(*state_, std::span(chain_).subspan(1, rows));
  pending_rows_ = 0;
  return true;
}

void DSparkDrafter::run_block() {
  const models::DSpark& model = network_.model();
  const auto rows = static_cast<size_t>(model.block_size);
  engine_.executable().read_weight_rows(embedding_index_, last_token_, 1,
                                        std::span(embeddings_).first(index(1, model.hidden_size)));
  std::iota(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(rows),
            static_cast<int32_t>(state_->committed_length()));
  const units::CallInputs inputs{.row_count = model.block_size,
                                 .embeddings = embeddings_,
                                 .positions = std::span(positions_).first(rows),
                                 .parents = std::span(chain_).first(rows),
                                 .selected = std::span(chain_).subspan(1, rows),
                                 .sees_whole_window = true};
  network_.executable().run(network_.block_function(bucket_), inputs, *state_, {.logits = logits_});
  has_candidates_.assign(has_candidates_.size(), false);
}

std::span<const float> DSparkDrafter::base_logits(int64_t slot) const {
  const int64_t rows = network_.model().draft_rows;
  return std::span(logits_).subspan(index(slot, rows), index(1, rows));
}

// The best rows in ascending order, so that of equal probabilities the lower row stays in front, with
// their columns of W2 side by side.
void DSparkDrafter::choose_candidates(int64_t slot) {
  if (has_candidates_[static_cast<size_t>(slot)]) return;
  has_candidates_[static_cast<size_t>(slot)] = true;
  const std::span<const float> logits = base_logits(slot);
  const auto count = static_cast<size_t>(candidate_count_);
  std::ranges::copy(logits, sorted_.begin());
  const auto last = sorted_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(sorted_.begin(), last, sorted_.end(), std::greater<>());
  const float least = *last;
  // Of rows that are as probable as the last one, so many as there is room for.
  auto ties = static_cast<int64_t>(std::count(sorted_.begin(), last + 1, least));
  const std::span<int32_t> rows =
      std::span(candidates_).subspan(index(slot, candidate_count_), count);
  size_t found = 0;
  for (size_t row = 0; row < logits.size() && found < count; ++row) {
    if (logits[row] < least || (logits[row] == least && ties-- <= 0)) continue;
    rows[found++] = static_cast<int32_t>(row);
  }
  CHECK_EQ(found, count);
  const int64_t rank = network_.model().markov_rank;
  float* w2 = slot_w2_.data() + index(slot * rank, candidate_count_);
  for (size_t i = 0; i < count; ++i) {
    slot_logits_[index(slot, candidate_count_) + i] = logits[static_cast<size_t>(rows[i])];
    const auto row = network_.w2(rows[i]);
    for (size_t k = 0; k < row.size(); ++k) w2[k * count + i] = row[k];
  }
}

void DSparkDrafter::open_children(int64_t slot, int32_t parent, TokenId token,
                                  float log_probability, int32_t self, decode::OfferQueue& offers) {
  const models::DSpark& model = network_.model();
  if (slot >= model.block_size || children_.size() == children_.capacity()) return;
  choose_candidates(slot);
  const auto list = static_cast<int32_t>(children_.size());
  children_.push_back({.slot = slot, .parent = parent, .log_probability = log_probability});
  const auto count = static_cast<size_t>(candidate_count_);
  float* scores = scores_.data() + index(list, candidate_count_);
  std::copy_n(slot_logits_.data() + index(slot, candidate_count_), count, scores);
  const float* w2 = slot_w2_.data() + index(slot * model.markov_rank, candidate_count_);
  for (const float before : network_.w1(token)) {
    for (size_t i = 0; i < count; ++i) scores[i] += before * w2[i];
    w2 += count;
  }
  const float best = *std::max_element(scores, scores + count);
  decode::exponentials({scores, count}, best, exponentials_);
  const float sum = std::reduce(exponentials_.begin(), exponentials_.end());
  const float total = best + std::log(sum);
  if (!std::isfinite(total)) return;
  for (size_t i = 0; i < count; ++i) scores[i] -= total;
  offer_best(list, self, offers);
}

void DSparkDrafter::offer_best(int32_t list, int32_t self, decode::OfferQueue& offers) {
  const Children& children = children_[static_cast<size_t>(list)];
  const auto scores = std::span(scores_).subspan(index(list, candidate_count_),
                                                 static_cast<size_t>(candidate_count_));
  const auto best = std::ranges::max_element(scores);
  if (*best == kTaken) return;
  const int32_t row = candidates_[index(children.slot, candidate_count_) +
                                  static_cast<size_t>(best - scores.begin())];
  offers.push({.parent = children.parent,
               .token = network_.token(row),
               .log_probability = children.log_probability + *best,
               .proposer = {.drafter = self, .estimate = static_cast<int32_t>(children.slot)},
               .cursor = list});
  *best = kTaken;
}

void DSparkDrafter::offer_first(int32_t self, decode::OfferQueue& offers) {
  children_.clear();
  if (failed_ || observed_length() + 1 != text_length_ || !run_context()) return;
  run_block();
  const bool is_usable =
      std::ranges::all_of(logits_, [](float logit) { return std::isfinite(logit); });
  if (!is_usable) return;  // weights of the world may be anything
  open_children(0, decode::kRoot, last_token_, 0, self, offers);
}

void DSparkDrafter::offer_next(const decode::Offer& taken, int32_t node,
                               decode::OfferQueue& offers) {
  const int32_t self = taken.proposer.drafter;
  offer_best(taken.cursor, self, offers);
  const int64_t slot = children_[static_cast<size_t>(taken.cursor)].slot + 1;
  open_children(slot, node, taken.token, taken.log_probability, self, offers);
}

}  // namespace espalier::engine
