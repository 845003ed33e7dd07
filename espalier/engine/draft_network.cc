#include "espalier/engine/draft_network.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "espalier/base/dequantize.h"
#include "espalier/formats/checkpoint.h"
#include "espalier/program/program.h"

namespace espalier::engine {
namespace {

Result<std::vector<float>> read_matrix(const Weights& weights, const std::string& name,
                                       int64_t rows, int64_t columns) {
  const std::vector<int64_t> shape = {rows, columns};
  ASSIGN_OR_RETURN(const TensorView view, weights.get(name, shape));
  std::vector<float> values(static_cast<size_t>(rows * columns));
  dequantize(view, values);
  RETURN_IF_ERROR(check_finite(name, values));
  return values;
}

// The drafter's tensors, and rows of the target's head under a name of their own. A unit may go on
// reading them, so all of their owners come along.
Weights with_head(const Weights& drafter, const Weights& target, const TensorView& target_head,
                  int64_t hidden, std::span<const TokenId> tokens, bool is_part) {
  std::map<std::string, TensorView> tensors = drafter.all();
  std::vector<std::shared_ptr<const void>> owners = {std::make_shared<const Weights>(drafter)};
  if (!is_part) {
    tensors[models::kDraftHeadTensor] = target_head;
    owners.push_back(std::make_shared<const Weights>(target));
    return Weights(std::move(tensors), std::move(owners));
  }
  const auto rows =
      std::make_shared<std::vector<float>>(tokens.size() * static_cast<size_t>(hidden));
  for (size_t i = 0; i < tokens.size(); ++i) {
    dequantize(
        target_head.row_range(tokens[i], 1),
        std::span(*rows).subspan(i * static_cast<size_t>(hidden), static_cast<size_t>(hidden)));
  }
  tensors[models::kDraftHeadTensor] = {.encoding = Encoding::kF32,
                                       .shape = {static_cast<int64_t>(tokens.size()), hidden},
                                       .bytes = std::as_bytes(std::span(*rows))};
  owners.push_back(rows);
  return Weights(std::move(tensors), std::move(owners));
}

}  // namespace

Status DraftNetwork::read_markov(const Weights& weights) {
  const std::string& prefix = model_.prefix;
  ASSIGN_OR_RETURN(w1_, read_matrix(weights, prefix + "markov_head.markov_w1.weight",
                                    model_.vocab_size, model_.markov_rank));
  ASSIGN_OR_RETURN(w2_, read_matrix(weights, prefix + "markov_head.markov_w2.weight",
                                    model_.draft_rows, model_.markov_rank));
  return Ok{};
}

Status DraftNetwork::read_tokens(const Weights& weights) {
  tokens_.resize(static_cast<size_t>(model_.draft_rows));
  if (!model_.has_draft_vocabulary) {
    for (size_t row = 0; row < tokens_.size(); ++row) tokens_[row] = static_cast<TokenId>(row);
    return Ok{};
  }
  const std::vector<int64_t> shape = {model_.draft_rows};
  ASSIGN_OR_RETURN(const TensorView view, weights.get("d2t", shape));
  if (view.encoding != Encoding::kI64) {
    return Error{.what = "tensor 'd2t' has another type",
                 .expected = "i64",
                 .actual = std::string(name_of(view.encoding)),
                 .fix = "Make the drafter again."};
  }
  for (size_t row = 0; row < tokens_.size(); ++row) {
    int64_t token = 0;
    std::memcpy(&token, view.bytes.data() + row * sizeof token, sizeof token);
    if (token < 0 || token >= model_.vocab_size) {
      return Error{.what = fmt::format("tensor 'd2t' names no token in row {}", row),
                   .expected = fmt::format("0 to {}", model_.vocab_size - 1),
                   .actual = fmt::format("{}", token),
                   .fix = "Make the drafter again."};
    }
    tokens_[row] = static_cast<TokenId>(token);
  }
  return Ok{};
}

Result<std::unique_ptr<const DraftNetwork>> DraftNetwork::load(
    const std::string& path, const models::Model& target, const Weights& weights, units::Unit& unit,
    const DraftNetworkOptions& options) try {
  ASSIGN_OR_RETURN(const formats::Checkpoint checkpoint, formats::open_checkpoint(path));
  std::unique_ptr<DraftNetwork> network(new DraftNetwork());
  auto model = models::make_dspark(checkpoint.config, checkpoint.weights, target);
  if (!model.ok()) return model.error().with_context(path);
  network->model_ = std::move(model).value();
  network->buckets_ = options.buckets;
  network->window_ = options.window;
  Status status = network->read_markov(checkpoint.weights);
  if (status.ok()) status = network->read_tokens(checkpoint.weights);
  if (!status.ok()) return status.error().with_context(path);

  program::ProgramSet programs;
  for (const int64_t kv_rows : options.buckets) {
    programs.functions.push_back(network->model_.build_context(options.window, kv_rows));
    programs.functions.push_back(network->model_.build_block(kv_rows));
  }
  ASSIGN_OR_RETURN(const TensorView head, weights.get(target.head_tensor));
  auto executable =
      unit.compile(std::move(programs),
                   with_head(checkpoint.weights, weights, head, network->model_.hidden_size,
                             network->tokens_, network->model_.has_draft_vocabulary),
                   models::kDraftHeadTensor, options.compile);
  if (!executable.ok()) return executable.error().with_context(path);
  network->executable_ = std::move(executable).value();
  return std::unique_ptr<const DraftNetwork>(std::move(network));
} catch (const std::bad_alloc&) {
  return out_of_memory_error("no memory to load the drafter", {},
                             "Close other programs, or leave --drafter out.");
}

}  // namespace espalier::engine
