#include "espalier/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "espalier/program/validate.h"
#include "espalier/units/registry.h"

namespace espalier::engine {
namespace {

constexpr int64_t kSmallestBucket = 512;  // positions
constexpr size_t kMaxBuckets = 6;         // each is compiled once per head
constexpr program::Head kHeads[] = {program::Head::kArgmax, program::Head::kLogits};

// `eos_token_id` of a configuration: a token, a list of tokens, or nothing. One that is no token of
// the model would end no answer, and narrowed to 32 bits it might be another.
Status collect_end_tokens(const Json& config, const std::string& source, int64_t vocab_size,
                          std::vector<TokenId>& out) {
  const Json* member = json_find(config, "eos_token_id");
  if (member == nullptr) return Ok{};
  const Json list = member->is_array() ? *member : Json::array({*member});
  for (const Json& id : list) {
    if (id.is_number_integer() && id >= 0 && id < vocab_size) {
      out.push_back(id.get<TokenId>());
      continue;
    }
    return Error{.what = source + ": 'eos_token_id' is no token of the model",
                 .expected = fmt::format("0 to {}, or a list of such", vocab_size - 1),
                 .actual = id.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 80),
                 .fix = "Correct it there."};
  }
  return Ok{};
}

Result<std::vector<TokenId>> end_tokens_of(const formats::Checkpoint& checkpoint,
                                           int64_t vocab_size) {
  const bool is_gguf = checkpoint.format == "gguf";
  std::vector<TokenId> tokens;
  RETURN_IF_ERROR(collect_end_tokens(checkpoint.generation_config,
                                     is_gguf ? "tokenizer.ggml" : "generation_config.json",
                                     vocab_size, tokens));
  RETURN_IF_ERROR(collect_end_tokens(checkpoint.config, is_gguf ? "tokenizer.ggml" : "config.json",
                                     vocab_size, tokens));
  // An added token may have no row; then the model cannot say it.
  if (checkpoint.tokenizer && checkpoint.tokenizer->eos_id.value_or(-1) >= 0 &&
      *checkpoint.tokenizer->eos_id < vocab_size) {
    tokens.push_back(*checkpoint.tokenizer->eos_id);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

std::vector<TensorInfo> tensors_of(const models::Model& model, const Weights& weights) {
  std::vector<std::string> names = model.required_tensors;
  names.push_back(model.embedding_tensor);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<TensorInfo> tensors;
  for (const std::string& name : names) {
    const TensorView& view = weights.all().at(name);  // make_model has seen it
    tensors.push_back({name, view.shape, view.encoding, view.byte_count()});
  }
  return tensors;
}

// Models speak of keys as config.json has them; a GGUF file has others.
std::string source_of(const formats::Checkpoint& checkpoint) {
  const char* keys = checkpoint.format == "gguf" ? " (keys as in a config.json)" : "";
  return checkpoint.path + keys;
}

Status check_options(const EngineOptions& options, const models::Model& model) {
  if (options.window < 1 || options.window > program::kMaxWindowRows) {
    return Error{.what = "the window has no usable height",
                 .expected = fmt::format("1 to {} rows", program::kMaxWindowRows),
                 .actual = fmt::format("{}", options.window),
                 .fix = "Choose another --window."};
  }
  const std::string reason =
      model.context_reason.empty() ? "" : fmt::format(" ({})", model.context_reason);
  if (options.context < 0 || options.context > model.context_length) {
    return Error{.what = "the context is not one that the model has",
                 .expected = fmt::format("1 to {} positions{}", model.context_length, reason),
                 .actual = fmt::format("{}", options.context),
                 .fix = "Choose another --context."};
  }
  return Ok{};
}

ArgmaxShape argmax_shape_of(const program::Program& program) {
  const auto head =
      std::ranges::find(program.ops, program::OpKind::kHeadArgmax, &program::Op::kind);
  CHECK(head != program.ops.end());
  return {.subrange_tokens = head->integer("subrange"),
          .subrange_count = program.value(head->outputs.at(0)).shape.channels};
}

}  // namespace

std::vector<int64_t> buckets_of(int64_t context) {
  for (int64_t factor = 2;; factor *= 2) {
    std::vector<int64_t> buckets;
    for (int64_t rows = kSmallestBucket; rows < context && buckets.size() < kMaxBuckets;
         rows *= factor) {
      buckets.push_back(rows);
    }
    if (buckets.size() == kMaxBuckets) continue;
    buckets.push_back(context);
    return buckets;
  }
}

Engine::Engine(formats::Checkpoint checkpoint, models::Model model, const EngineOptions& options)
    : checkpoint_(std::move(checkpoint)),
      model_(std::move(model)),
      options_(options),
      buckets_(buckets_of(options.context)),
      tensors_(tensors_of(model_, checkpoint_.weights)) {}

program::Program Engine::program(size_t bucket, program::Head head) const {
  models::FunctionShape shape{.rows = options_.window,
                              .kv_rows = buckets_.at(bucket),
                              .selected = options_.window,
                              .head = head};
  if (draft_network_ != nullptr) shape.taps = draft_network_->model().target_layers;
  return model_.build(shape);
}

int64_t Engine::tapped_channels() const {
  if (draft_network_ == nullptr) return 0;
  const models::DSpark& drafter = draft_network_->model();
  return static_cast<int64_t>(drafter.target_layers.size()) * drafter.hidden_size;
}

size_t Engine::function(size_t bucket, program::Head head) const {
  return bucket * std::size(kHeads) + (head == program::Head::kArgmax ? 0 : 1);
}

Result<std::unique_ptr<const Engine>> Engine::load(const std::string& path,
                                                   const EngineOptions& options) {
  ASSIGN_OR_RETURN(formats::Checkpoint checkpoint, formats::open_checkpoint(path));
  return load(std::move(checkpoint), options);
}

Result<std::unique_ptr<const Engine>> Engine::load(formats::Checkpoint checkpoint,
                                                   const EngineOptions& options) try {
  auto model = models::make_model(checkpoint.config, checkpoint.weights);
  if (!model.ok()) return model.error().with_context(source_of(checkpoint));
  auto end_tokens = end_tokens_of(checkpoint, model->vocab_size);
  if (!end_tokens.ok()) return end_tokens.error().with_context(checkpoint.path);
  RETURN_IF_ERROR(check_options(options, *model));
  EngineOptions chosen = options;
  if (chosen.unit.empty()) chosen.unit = units::unit_names().front();
  if (chosen.context == 0) chosen.context = model->context_length;
  ASSIGN_OR_RETURN(std::unique_ptr<units::Unit> unit, units::make_unit(chosen.unit));

  std::unique_ptr<Engine> engine(
      new Engine(std::move(checkpoint), std::move(model).value(), chosen));
  engine->end_tokens_ = std::move(end_tokens).value();
  if (!chosen.drafter.empty()) {
    ASSIGN_OR_RETURN(
        engine->draft_network_,
        DraftNetwork::load(
            chosen.drafter, engine->model_, engine->checkpoint_.weights, *unit,
            {.compile = chosen.compile, .window = chosen.window, .buckets = engine->buckets_}));
  }
  program::ProgramSet programs;
  for (size_t bucket = 0; bucket < engine->buckets_.size(); ++bucket) {
    for (const program::Head head : kHeads) {
      CHECK_EQ(programs.functions.size(), engine->function(bucket, head));
      programs.functions.push_back(engine->program(bucket, head));
    }
  }
  engine->argmax_shape_ =
      argmax_shape_of(programs.functions[engine->function(0, program::Head::kArgmax)]);
  auto executable = unit->compile(std::move(programs), engine->checkpoint_.weights,
                                  engine->model_.embedding_tensor, chosen.compile);
  if (!executable.ok()) return executable.error().with_context(engine->checkpoint_.path);
  engine->executable_ = std::move(executable).value();
  engine->checkpoint_.weights = Weights();  // a unit that still reads the files keeps its own
  return std::unique_ptr<const Engine>(std::move(engine));
} catch (const std::bad_alloc&) {
  return out_of_memory_error(
      "no memory to load the model", {},
      "Close other programs, or use a smaller model, --window or --context.");
}

}  // namespace espalier::engine
