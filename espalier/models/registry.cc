#include <array>

#include "espalier/models/families.h"
#include "espalier/models/model.h"

namespace espalier::models {
namespace {

struct Architecture {
  std::string_view model_type;
  Result<Model> (*make)(const Json& config, const Weights& weights);
};

// One row per model_type of config.json.
constexpr std::array kArchitectures = {
    Architecture{"llama", make_llama}, Architecture{"mistral", make_mistral},
    Architecture{"qwen2", make_qwen2}, Architecture{"qwen3", make_qwen3},
    Architecture{"lfm2", make_lfm2},
};

}  // namespace

Result<Model> make_model(const Json& config, const Weights& weights) {
  ASSIGN_OR_RETURN(const std::string model_type, json_string(config, "model_type"));
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.model_type != model_type) continue;
    auto model = architecture.make(config, weights);
    if (!model.ok()) return model.error().with_context(model_type);
    return model;
  }
  return Error{.what = fmt::format("architecture '{}' is unknown", model_type),
               .expected = fmt::format("{}", fmt::join(known_architectures(), ", ")),
               .actual = {},
               .fix = "Use a checkpoint of one of these architectures."};
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  for (const Architecture& architecture : kArchitectures) {
    names.emplace_back(architecture.model_type);
  }
  return names;
}

}  // namespace espalier::models
