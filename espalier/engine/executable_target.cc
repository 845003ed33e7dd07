#include "espalier/engine/executable_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace espalier::engine {
namespace {

size_t elements(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }

Error no_memory(std::string expected) {
  return out_of_memory_error("no memory for a session", std::move(expected),
                             "Close other programs, or use a smaller --window.");
}

}  // namespace

Result<std::unique_ptr<ExecutableTarget>> ExecutableTarget::create(const Engine& engine) {
  ASSIGN_OR_RETURN(std::unique_ptr<units::State> state,
                   engine.executable().create_state(engine.buckets().front()));
  try {
    return std::unique_ptr<ExecutableTarget>(new ExecutableTarget(engine, std::move(state)));
  } catch (const std::bad_alloc&) {
    return no_memory(fmt::format("room for windows of {} rows", engine.options().window));
  }
}

ExecutableTarget::ExecutableTarget(const Engine& engine, std::unique_ptr<units::State> state)
    : engine_(engine), state_(std::move(state)) {
  const models::Model& model = engine.model();
  embedding_index_ = engine.executable().weight_index(model.embedding_tensor);
  CHECK_GE(embedding_index_, 0);
  embeddings_.resize(elements(max_rows(), model.hidden_size));
  positions_.resize(static_cast<size_t>(max_rows()));
  max_values_.resize(elements(max_rows(), engine_.argmax_shape().subrange_count));
  max_indices_.resize(max_values_.size());
  taps_.resize(elements(max_rows(), engine_.tapped_channels()));
}

Status ExecutableTarget::prepare_logits(int64_t selected_rows) try {
  const size_t wanted = elements(selected_rows, vocab_size());
  if (logits_.size() < wanted) logits_.resize(wanted);
  return Ok{};
} catch (const std::bad_alloc&) {
  return no_memory(fmt::format("room for the logits of {} rows", selected_rows));
}

Status ExecutableTarget::reserve(int64_t positions) {
  const auto buckets = engine_.buckets();
  const auto bucket = std::ranges::lower_bound(buckets, positions);
  if (bucket == buckets.end()) {
    return Error{.what = "the text does not fit into the context",
                 .expected = fmt::format("at most {} positions", context_length()),
                 .actual = fmt::format("{}", positions),
                 .fix = "Shorten the text or load the model with a larger --context."};
  }
  if (*bucket <= state_->kv_rows()) return Ok{};
  RETURN_IF_ERROR(engine_.executable().resize_state(*state_, *bucket));
  bucket_ = static_cast<size_t>(bucket - buckets.begin());
  return Ok{};
}

Status ExecutableTarget::truncate(int64_t length) {
  if (length >= committed_length()) return Ok{};
  if (engine_.executable().truncate_state(*state_, length).ok()) return Ok{};
  return engine_.executable().truncate_state(*state_, 0);
}

void ExecutableTarget::run(const decode::Window& window) {
  const auto row_count = static_cast<int64_t>(window.tokens.size());
  const int64_t hidden = engine_.model().hidden_size;
  for (size_t row = 0; row < window.tokens.size(); ++row) {
    const auto embedding =
        std::span(embeddings_).subspan(row * elements(1, hidden), elements(1, hidden));
    engine_.executable().read_weight_rows(embedding_index_, window.tokens[row], 1, embedding);
    const int32_t parent = window.parents[row];
    positions_[row] = parent < 0 ? static_cast<int32_t>(committed_length())
                                 : positions_[static_cast<size_t>(parent)] + 1;
  }
  const auto selected = static_cast<int64_t>(window.selected.size());
  const bool wants_logits = window.head == decode::HeadKind::kLogits;
  if (wants_logits) CHECK_LE(elements(selected, vocab_size()), logits_.size());  // prepare_logits
  const units::CallInputs inputs{
      .row_count = row_count,
      .embeddings = std::span(embeddings_).first(elements(row_count, hidden)),
      .positions = std::span(positions_).first(window.tokens.size()),
      .parents = window.parents,
      .selected = window.selected};
  const units::CallOutputs outputs{
      .max_values =
          std::span(max_values_).first(elements(selected, engine_.argmax_shape().subrange_count)),
      .max_indices =
          std::span(max_indices_).first(elements(selected, engine_.argmax_shape().subrange_count)),
      .logits = wants_logits ? std::span(logits_).first(elements(selected, vocab_size()))
                             : std::span<float>(),
      .taps = std::span(taps_).first(elements(row_count, engine_.tapped_channels()))};
  const auto head = wants_logits ? program::Head::kLogits : program::Head::kArgmax;
  engine_.executable().run(engine_.function(bucket_, head), inputs, *state_, outputs);
  ++calls_;
  rows_ += row_count;
}

TokenId ExecutableTarget::argmax(int64_t selected_index) const {
  const ArgmaxShape& shape = engine_.argmax_shape();
  const size_t first = elements(selected_index, shape.subrange_count);
  size_t best = first;
  for (size_t i = first + 1; i < first + elements(1, shape.subrange_count); ++i) {
    if (max_values_[i] > max_values_[best]) best = i;
  }
  return static_cast<TokenId>(static_cast<int64_t>(best - first) * shape.subrange_tokens +
                              max_indices_[best]);
}

std::span<const float> ExecutableTarget::logits(int64_t selected_index) const {
  return std::span(logits_).subspan(elements(selected_index, vocab_size()),
                                    elements(1, vocab_size()));
}

std::span<const float> ExecutableTarget::taps(int64_t row) const {
  const int64_t channels = engine_.tapped_channels();
  return std::span(taps_).subspan(elements(row, channels), elements(1, channels));
}

void ExecutableTarget::commit(std::span<const int32_t> path) {
  engine_.executable().commit(*state_, path);
}

}  // namespace espalier::engine
