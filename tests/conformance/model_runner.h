// A model on a unit, driven by hand: what conformance tests need and no more (the product's driver
// is engine/session.h). One sequence; one thread. Faults end the test program.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/weights.h"
#include "espalier/models/model.h"
#include "espalier/units/unit.h"

namespace espalier::conformance {

class ModelRunner {
 public:
  // `window_rows`: T of the one function, which has a logits head for every row.
  ModelRunner(units::Unit& unit, const models::Model& model, const Weights& weights,
              int64_t window_rows, int64_t kv_rows, const units::CompileOptions& options);

  // Forgets the sequence.
  void reset();
  // Runs rows after what is committed; logits [rows, vocab]. Nothing is committed.
  std::vector<float> run(std::span<const int32_t> ids, std::span<const int32_t> parents);
  void commit(std::span<const int32_t> path);
  // Logits of every id of a sequence that starts empty, in windows; everything is committed.
  std::vector<float> forward(std::span<const int32_t> ids);

  int64_t vocab() const { return vocab_; }
  int64_t committed() const { return state_->committed_length(); }
  units::Executable& executable() { return *executable_; }
  units::State& state() { return *state_; }
  void replace_state(std::unique_ptr<units::State> state) { state_ = std::move(state); }

 private:
  int64_t vocab_;
  int64_t hidden_;
  int64_t window_rows_;
  int64_t kv_rows_;
  std::unique_ptr<units::Executable> executable_;
  std::unique_ptr<units::State> state_;
  int64_t embedding_;  // weight index
};

// parents of a chain: -1, 0, 1, ...
std::vector<int32_t> chain(size_t length);

// Log-probability that a row of logits gives to `id`.
double logprob(std::span<const float> logits, int32_t id);

// A committed checkpoint of tests/golden/models, with what transformers says about it.
struct GoldenSequence {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;   // of each id after the first
  std::vector<int32_t> top1_ids;  // at each place
};
struct GoldenModel {
  std::string name;
  models::Model model;
  Weights weights;
  std::vector<GoldenSequence> sequences;
};

// Directories of the folder, sorted; ESPALIER_GOLDEN_MODELS names another folder than the committed
// one.
std::vector<std::string> golden_model_directories();
GoldenModel open_golden_model(const std::string& directory);

}  // namespace espalier::conformance
