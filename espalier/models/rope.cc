#include "espalier/models/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include "espalier/base/dequantize.h"
#include "espalier/models/config.h"
#include "espalier/program/ops.h"

namespace espalier::models {
namespace {

constexpr const char* kFrequencyFactorsTensor = "rope_freqs.weight";

// Parameters lie strictly between these: far beyond what any model has, and near enough that the
// quotients of a few of them stay inside fp64.
constexpr double kLeastParameter = 1e-6;
constexpr double kMostParameter = 1e12;

struct Settings {
  Json parameters;  // rope_parameters, or rope_scaling: one flat object
  std::string type;
  double theta = 0;
  int64_t rotary_dim = 0;        // rotated channels of a head, even
  int64_t context_length = 0;    // max_position_embeddings
  int64_t original_context = 0;  // of the unscaled training
};

// NaN is in no range.
bool is_between(double value, double least, double most) { return value > least && value < most; }

Result<double> positive_number(const Json& object, const std::string& key,
                               double least = kLeastParameter) {
  ASSIGN_OR_RETURN(const double value, json_number(object, key));
  if (is_between(value, least, kMostParameter)) return value;
  return config_error(fmt::format("rope parameter '{}' is out of range", key),
                      fmt::format("a number above {} and below {}", least, kMostParameter),
                      fmt::format("{}", value));
}

Result<double> positive_number_or(const Json& object, const std::string& key, double fallback) {
  if (json_find(object, key) == nullptr) return fallback;
  return positive_number(object, key);
}

// The families here rotate whole heads: with the plain frequencies transformers leaves the factor
// alone, with scaled ones it makes too few of them and cannot run.
Status check_partial(const Json& config, const Json& parameters, const std::string& type) {
  ASSIGN_OR_RETURN(const double flat, json_number_or(config, "partial_rotary_factor", 1.0));
  ASSIGN_OR_RETURN(const double partial, json_number_or(parameters, "partial_rotary_factor", flat));
  if (type == "default" || partial == 1.0) return Ok{};
  return config_error(fmt::format("'partial_rotary_factor' with rope_type '{}'", type),
                      "none, or 1: these models rotate whole heads", fmt::format("{}", partial));
}

Result<Settings> read_settings(const Json& config, int64_t head_dim, double default_theta,
                               int64_t context_length) {
  Settings settings;
  settings.context_length = context_length;
  // rope_scaling is the older name; where both are there, rope_scaling wins, as in transformers.
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* object = json_find(config, key);
    if (object == nullptr || object->empty()) continue;
    if (!object->is_object()) {
      return config_error(fmt::format("'{}' has the wrong type", key), "an object",
                          object->type_name());
    }
    settings.parameters = *object;
  }
  const Json& parameters = settings.parameters;
  for (const auto& item : parameters.items()) {
    if (!item.value().is_object()) continue;
    return config_error("rope parameters differ between layers", "one set for all layers",
                        fmt::format("a set of its own for '{}'", item.key()));
  }
  ASSIGN_OR_RETURN(std::string legacy_type, json_string_or(parameters, "type", "default"));
  ASSIGN_OR_RETURN(settings.type, json_string_or(parameters, "rope_type", legacy_type));

  ASSIGN_OR_RETURN(const double flat_theta,
                   positive_number_or(config, "rope_theta", default_theta));
  ASSIGN_OR_RETURN(settings.theta, positive_number_or(parameters, "rope_theta", flat_theta));

  RETURN_IF_ERROR(check_partial(config, parameters, settings.type));
  ASSIGN_OR_RETURN(settings.rotary_dim, json_integer_or(config, "rope_rotary_dim", head_dim));
  if (settings.rotary_dim < 2 || settings.rotary_dim > head_dim || settings.rotary_dim % 2 != 0) {
    return config_error("rotary width is out of range",
                        fmt::format("an even number of channels up to {}", head_dim),
                        fmt::format("{} of {} channels", settings.rotary_dim, head_dim));
  }
  const char* original_key = "original_max_position_embeddings";
  ASSIGN_OR_RETURN(const int64_t nested_original,
                   dimension_or(parameters, original_key, context_length, kMaxContext));
  ASSIGN_OR_RETURN(settings.original_context,
                   dimension_or(config, original_key, nested_original, kMaxContext));
  return settings;
}

// theta^(-2i / dim), rounded to fp32 where the training code rounds.
std::vector<double> base_frequencies(double theta, int64_t rotary_dim) {
  std::vector<double> frequencies;
  for (int64_t channel = 0; channel < rotary_dim; channel += 2) {
    const float exponent = static_cast<float>(channel) / static_cast<float>(rotary_dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies.push_back(static_cast<double>(1.0f / power));
  }
  return frequencies;
}

Status no_scaling(const Settings&, Rope&) { return Ok{}; }

Status linear_scaling(const Settings& settings, Rope& rope) {
  ASSIGN_OR_RETURN(const double factor, positive_number(settings.parameters, "factor"));
  for (double& frequency : rope.frequencies) frequency /= factor;
  return Ok{};
}

// Up to max_position_embeddings the dynamic base is the plain one.
Status dynamic_scaling(const Settings& settings, Rope& rope) {
  rope.context_limit = settings.context_length;
  return Ok{};
}

// Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between
// interpolated.
Status llama3_scaling(const Settings& settings, Rope& rope) {
  ASSIGN_OR_RETURN(const double factor, positive_number(settings.parameters, "factor"));
  ASSIGN_OR_RETURN(const double low, positive_number(settings.parameters, "low_freq_factor"));
  ASSIGN_OR_RETURN(const double high,
                   positive_number(settings.parameters, "high_freq_factor", low));
  const auto context = static_cast<double>(settings.original_context);
  for (double& frequency : rope.frequencies) {
    const double turns = context * frequency / (2 * std::numbers::pi);  // within the old context
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
  return Ok{};
}

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * std::log(factor) + 1.0;
}

Result<double> yarn_scale(const Settings& settings, double factor) {
  const Json& parameters = settings.parameters;
  if (json_find(parameters, "attention_factor") != nullptr) {
    return positive_number(parameters, "attention_factor");
  }
  ASSIGN_OR_RETURN(const double multiplier, json_number_or(parameters, "mscale", 0));
  ASSIGN_OR_RETURN(const double all_dim, json_number_or(parameters, "mscale_all_dim", 0));
  if (multiplier == 0 || all_dim == 0) return yarn_magnitude(factor, 1);
  const double scale = yarn_magnitude(factor, multiplier) / yarn_magnitude(factor, all_dim);
  if (is_between(scale, kLeastParameter, kMostParameter)) return scale;
  return config_error(
      "rope parameters 'mscale' and 'mscale_all_dim' are out of range",
      fmt::format("a quotient above {} and below {}", kLeastParameter, kMostParameter),
      fmt::format("{}", scale));
}

// YaRN: dimensions that turn more than beta_fast times within the old context are kept, those that
// turn less than beta_slow times are stretched, with a linear ramp over the dimensions between.
Status yarn_scaling(const Settings& settings, Rope& rope) {
  const Json& parameters = settings.parameters;
  if (settings.theta <= 1) {  // dimensions are found by its logarithm
    return config_error("rope parameter 'rope_theta' is out of range", "a number above 1 with yarn",
                        fmt::format("{}", settings.theta));
  }
  const auto original = static_cast<double>(settings.original_context);
  double factor = static_cast<double>(settings.context_length) / original;  // where it is null
  const bool is_null = parameters.contains("factor") && parameters["factor"].is_null();
  if (!is_null) {
    ASSIGN_OR_RETURN(factor, positive_number(parameters, "factor"));
  }
  ASSIGN_OR_RETURN(const double beta_fast, positive_number_or(parameters, "beta_fast", 32));
  ASSIGN_OR_RETURN(const double beta_slow, positive_number_or(parameters, "beta_slow", 1));
  ASSIGN_OR_RETURN(const bool truncate, json_bool_or(parameters, "truncate", true));
  ASSIGN_OR_RETURN(rope.scale, yarn_scale(settings, factor));

  const auto dim = static_cast<double>(settings.rotary_dim);
  const auto dimension_of = [&](double turns) {
    return dim * std::log(original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(settings.theta));
  };
  double low = dimension_of(beta_fast);
  double high = dimension_of(beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    rope.frequencies[i] *= ramp / factor + (1 - ramp);
  }
  return Ok{};
}

// LongRoPE has one list of factors up to the original context and another beyond it; the short list
// is used.
Status longrope_scaling(const Settings& settings, Rope& rope) {
  const Json& parameters = settings.parameters;
  const Json* factors = json_find(parameters, "short_factor");
  if (factors == nullptr || !factors->is_array() || factors->size() != rope.frequencies.size()) {
    return config_error("rope parameter 'short_factor' has the wrong shape",
                        fmt::format("a list of {} numbers", rope.frequencies.size()),
                        factors == nullptr ? "nothing" : fmt::format("{} items", factors->size()));
  }
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    ASSIGN_OR_RETURN(const double factor,
                     positive_number(Json{{"short_factor", (*factors)[i]}}, "short_factor"));
    rope.frequencies[i] /= factor;
  }
  const auto original = static_cast<double>(settings.original_context);
  ASSIGN_OR_RETURN(const double factor,
                   positive_number_or(parameters, "factor",
                                      static_cast<double>(settings.context_length) / original));
  const double suggested =
      factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(std::max(original, 2.0)));
  ASSIGN_OR_RETURN(rope.scale, positive_number_or(parameters, "attention_factor", suggested));
  rope.context_limit = settings.original_context;
  return Ok{};
}

struct Scaling {
  std::string_view type;
  Status (*apply)(const Settings& settings, Rope& rope);
};

constexpr std::array kScalings = {
    Scaling{"default", no_scaling},      Scaling{"linear", linear_scaling},
    Scaling{"dynamic", dynamic_scaling}, Scaling{"llama3", llama3_scaling},
    Scaling{"yarn", yarn_scaling},       Scaling{"longrope", longrope_scaling},
};

Status apply_scaling(const Settings& settings, Rope& rope) {
  std::vector<std::string_view> known;
  for (const Scaling& scaling : kScalings) {
    if (scaling.type == settings.type) return scaling.apply(settings, rope);
    known.push_back(scaling.type);
  }
  return config_error("rope_type is unknown", fmt::format("{}", fmt::join(known, ", ")),
                      settings.type);
}

Status divide_by_factors(const Weights& weights, Rope& rope) {
  if (!weights.contains(kFrequencyFactorsTensor)) return Ok{};
  const auto pairs = static_cast<int64_t>(rope.frequencies.size());
  ASSIGN_OR_RETURN(const TensorView view, weights.get(kFrequencyFactorsTensor, std::array{pairs}));
  if (encoding_info(view.encoding).block_elements != 1) {
    return Error{.what = fmt::format("tensor '{}' has the wrong encoding", kFrequencyFactorsTensor),
                 .expected = "f32",
                 .actual = std::string(name_of(view.encoding)),
                 .fix = "Convert the checkpoint again."};
  }
  std::vector<float> factors(rope.frequencies.size());
  dequantize(view, factors);
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!is_between(static_cast<double>(factors[i]), kLeastParameter, kMostParameter)) {
      return Error{
          .what = fmt::format("tensor '{}' has a bad value", kFrequencyFactorsTensor),
          .expected = fmt::format("numbers above {} and below {}", kLeastParameter, kMostParameter),
          .actual = fmt::format("{} at {}", factors[i], i),
          .fix = "The file is damaged."};
    }
    rope.frequencies[i] /= static_cast<double>(factors[i]);
  }
  return Ok{};
}

// To fp32, where the parameters have left frequencies that a program may have.
Status round_frequencies(Rope& rope) {
  for (double& frequency : rope.frequencies) {
    if (!(frequency >= 0 && frequency <= program::kMaxRopeFrequency)) {
      return config_error("the rope parameters make a bad frequency",
                          fmt::format("0 to {} radians a position", program::kMaxRopeFrequency),
                          fmt::format("{}", frequency));
    }
    frequency = static_cast<float>(frequency);
  }
  return Ok{};
}

}  // namespace

Result<Rope> read_rope(const Json& config, const Weights& weights, int64_t head_dim,
                       double default_theta, int64_t context_length) {
  if (head_dim > kMaxHeadDim) {
    return config_error("heads are too wide", fmt::format("at most {} channels", kMaxHeadDim),
                        fmt::format("{}", head_dim));
  }
  ASSIGN_OR_RETURN(const Settings settings,
                   read_settings(config, head_dim, default_theta, context_length));
  Rope rope;
  ASSIGN_OR_RETURN(rope.interleaved, json_bool_or(config, "rope_interleaved", false));
  rope.frequencies = base_frequencies(settings.theta, settings.rotary_dim);
  RETURN_IF_ERROR(apply_scaling(settings, rope));
  RETURN_IF_ERROR(divide_by_factors(weights, rope));
  RETURN_IF_ERROR(round_frequencies(rope));
  return rope;
}

}  // namespace espalier::models
