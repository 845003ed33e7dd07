#include "tests/conformance/model_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include "espalier/base/check.h"
#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/formats/checkpoint.h"
#include "tests/conformance/value_or_die.h"

namespace espalier::conformance {
namespace {

Json read_json(const std::string& path) {
  return value_or_die(parse_json(value_or_die(read_text_file(path)), path));
}

}  // namespace

ModelRunner::ModelRunner(units::Unit& unit, const models::Model& model, const Weights& weights,
                         int64_t window_rows, int64_t kv_rows, const units::CompileOptions& options)
    : vocab_(model.vocab_size),
      hidden_(model.hidden_size),
      window_rows_(window_rows),
      kv_rows_(kv_rows) {
  program::ProgramSet programs;
  programs.functions.push_back(model.build({.rows = window_rows,
                                            .kv_rows = kv_rows,
                                            .selected = window_rows,
                                            .head = program::Head::kLogits}));
  executable_ =
      value_or_die(unit.compile(std::move(programs), weights, model.embedding_tensor, options));
  embedding_ = executable_->weight_index(model.embedding_tensor);
  CHECK_GE(embedding_, 0);
  reset();
}

void ModelRunner::reset() { state_ = value_or_die(executable_->create_state(kv_rows_)); }

std::vector<float> ModelRunner::run(std::span<const int32_t> ids,
                                    std::span<const int32_t> parents) {
  const size_t rows = ids.size();
  std::vector<float> embeddings(rows * static_cast<size_t>(hidden_));
  std::vector<int32_t> positions(rows);
  std::vector<int32_t> selected(rows);
  std::iota(selected.begin(), selected.end(), 0);
  for (size_t r = 0; r < rows; ++r) {
    const auto row = std::span(embeddings)
                         .subspan(r * static_cast<size_t>(hidden_), static_cast<size_t>(hidden_));
    executable_->read_weight_rows(embedding_, ids[r], 1, row);
    positions[r] = parents[r] < 0 ? static_cast<int32_t>(committed())
                                  : positions[static_cast<size_t>(parents[r])] + 1;
  }
  std::vector<float> logits(rows * static_cast<size_t>(vocab_));
  executable_->run(0,
                   {.row_count = static_cast<int64_t>(rows),
                    .embeddings = embeddings,
                    .positions = positions,
                    .parents = parents,
                    .selected = selected},
                   *state_, {.max_values = {}, .max_indices = {}, .logits = logits});
  return logits;
}

void ModelRunner::commit(std::span<const int32_t> path) { executable_->commit(*state_, path); }

std::vector<float> ModelRunner::forward(std::span<const int32_t> ids) {
  reset();
  std::vector<float> logits;
  while (!ids.empty()) {
    const size_t rows = std::min(ids.size(), static_cast<size_t>(window_rows_));
    const auto window = run(ids.first(rows), chain(rows));
    logits.insert(logits.end(), window.begin(), window.end());
    std::vector<int32_t> path(rows);
    std::iota(path.begin(), path.end(), 0);
    commit(path);
    ids = ids.subspan(rows);
  }
  return logits;
}

std::vector<int32_t> chain(size_t length) {
  std::vector<int32_t> parents(length);
  std::iota(parents.begin(), parents.end(), -1);
  return parents;
}

double logprob(std::span<const float> logits, int32_t id) {
  const double highest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - highest);
  return static_cast<double>(logits[static_cast<size_t>(id)]) - highest - std::log(total);
}

std::vector<std::string> golden_model_directories() {
  const char* other = std::getenv("ESPALIER_GOLDEN_MODELS");
  const std::filesystem::path folder =
      other != nullptr ? std::filesystem::path(other)
                       : std::filesystem::path(ESPALIER_SOURCE_DIR) / "tests/golden/models";
  std::vector<std::string> directories;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) directories.push_back(entry.path().string());
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

GoldenModel open_golden_model(const std::string& directory) {
  GoldenModel golden;
  golden.name = std::filesystem::path(directory).filename().string();
  auto checkpoint = value_or_die(formats::open_checkpoint(directory));
  golden.weights = std::move(checkpoint.weights);
  golden.model = value_or_die(models::make_model(checkpoint.config, golden.weights));
  const Json expected = read_json(directory + "/golden.json");
  for (const Json& sequence : expected.at("sequences")) {
    golden.sequences.push_back({sequence.at("ids").get<std::vector<int32_t>>(),
                                sequence.at("logprobs").get<std::vector<double>>(),
                                sequence.at("top1_ids").get<std::vector<int32_t>>()});
  }
  CHECK(!golden.sequences.empty());
  return golden;
}

}  // namespace espalier::conformance
