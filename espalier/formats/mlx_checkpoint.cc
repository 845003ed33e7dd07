#include "espalier/formats/mlx_checkpoint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace espalier::formats {
namespace {

constexpr std::string_view kWeight = ".weight", kScales = ".scales", kBiases = ".biases";
constexpr int64_t kWordBits = 32;

constexpr std::array kAffineEncodings = {Encoding::kAffine4G32,  Encoding::kAffine4G64,
                                         Encoding::kAffine4G128, Encoding::kAffine8G32,
                                         Encoding::kAffine8G64,  Encoding::kAffine8G128};

int64_t bits_of(const EncodingInfo& info) { return info.block_bytes * 8 / info.block_elements; }

Result<Encoding> affine_encoding(const Json& settings, const std::string& where) {
  ASSIGN_OR_RETURN(const std::string mode, json_string_or(settings, "mode", "affine"));
  ASSIGN_OR_RETURN(const int64_t bits, json_integer(settings, "bits"));
  ASSIGN_OR_RETURN(const int64_t group_size, json_integer(settings, "group_size"));
  // One more factor of all scales of a module, in a tensor of its own.
  ASSIGN_OR_RETURN(const bool has_global_scale, json_bool_or(settings, "global_scale", false));
  const auto* found = std::ranges::find_if(kAffineEncodings, [&](Encoding encoding) {
    const EncodingInfo& info = encoding_info(encoding);
    return bits_of(info) == bits && info.block_elements == group_size;
  });
  if (mode == "affine" && !has_global_scale && found != kAffineEncodings.end()) return *found;
  return Error{
      .what = where + " asks for a quantisation that is not known",
      .expected = "mode affine, 4 or 8 bits, groups of 32, 64 or 128",
      .actual = fmt::format("mode {}, {} bits, groups of {}{}", mode, bits, group_size,
                            has_global_scale ? ", a global scale" : ""),
      .fix = "Convert the model anew: mlx_lm.convert -q --q-bits 4 (or 8) --q-group-size 64."};
}

// How a module is quantised: nothing where it is not.
Result<std::optional<Encoding>> encoding_of_module(const Json& quantization,
                                                   const std::string& module) {
  const std::string where = fmt::format("'quantization' of '{}'", module);
  const Json* own = json_find(quantization, module);
  if (own == nullptr || (own->is_boolean() && own->get<bool>())) {
    ASSIGN_OR_RETURN(const Encoding encoding, affine_encoding(quantization, "'quantization'"));
    return std::optional(encoding);
  }
  if (own->is_boolean()) return std::optional<Encoding>();
  if (own->is_object()) {
    const auto encoding = affine_encoding(*own, where);
    if (!encoding.ok()) return encoding.error().with_context(where);
    return std::optional(*encoding);
  }
  return Error{.what = where + " is not one",
               .expected = "an object with bits and group_size, true or false",
               .actual = own->type_name(),
               .fix = "Convert the model anew."};
}

Error contradiction(const std::string& what, std::string expected, std::string actual) {
  return Error{
      .what = what,
      .expected = std::move(expected),
      .actual = std::move(actual),
      .fix = "The file is damaged, or config.json is not its own; convert the model anew."};
}

std::string described(const TensorView& view) {
  return fmt::format("{} {}", name_of(view.encoding), shape_text(view.shape));
}

bool is_scale_encoding(Encoding encoding) {
  return encoding == Encoding::kF16 || encoding == Encoding::kBF16 || encoding == Encoding::kF32;
}

// [.., words] and twice [.., groups] as one [.., columns].
Result<TensorView> join(const std::string& module, Encoding encoding, const TensorView& words,
                        const TensorView& scales, const TensorView& biases) {
  const std::string what = fmt::format("the tensors of '{}' do not fit together", module);
  if (words.encoding != Encoding::kU32) {
    return contradiction(what, "u32 for 'weight' where there are scales", described(words));
  }
  if (!is_scale_encoding(scales.encoding) || biases.encoding != scales.encoding ||
      biases.shape != scales.shape) {
    return contradiction(what, "'scales' and 'biases' of one shape in f16, bf16 or f32",
                         described(scales) + " and " + described(biases));
  }
  const EncodingInfo& info = encoding_info(encoding);
  TensorView joined = words;
  joined.encoding = encoding;
  joined.beside = {scales.encoding, scales.bytes, biases.bytes};
  // Groups that are there take bytes of the file, so that nothing overflows.
  const bool has_groups = !scales.bytes.empty() && !words.bytes.empty();
  const int64_t columns = has_groups ? scales.columns() * info.block_elements : 0;
  if (has_groups && !joined.shape.empty()) joined.shape.back() = columns;
  std::vector<int64_t> expected = joined.shape;
  if (has_groups && !expected.empty()) expected.back() = scales.columns();
  if (has_groups && scales.shape == expected &&
      words.columns() * kWordBits == columns * bits_of(info))
    return joined;
  return contradiction(what,
                       fmt::format("[.., columns * {} / 32] words and [.., columns / {}] scales",
                                   bits_of(info), info.block_elements),
                       shape_text(words.shape) + " and " + shape_text(scales.shape));
}

// The joined "X.weight" of the module with `scales`.
Result<TensorView> join_module(const Json& quantization, const std::string& module,
                               const TensorView& scales,
                               const std::map<std::string, TensorView>& tensors) {
  const std::string weight_name = module + std::string(kWeight);
  const std::string biases_name = module + std::string(kBiases);
  for (const std::string& name : {weight_name, biases_name}) {
    if (tensors.contains(name)) continue;
    return contradiction(fmt::format("tensor '{}' is missing", name),
                         fmt::format("it, because there is '{}{}'", module, kScales), {});
  }
  if (quantization.is_null()) {
    return contradiction(fmt::format("'{}' has quantised weights", module),
                         "'quantization' in config.json", "none");
  }
  ASSIGN_OR_RETURN(const std::optional<Encoding> encoding,
                   encoding_of_module(quantization, module));
  if (!encoding) {
    return contradiction(fmt::format("'{}' has scales", module),
                         "none, because 'quantization' says false for it",
                         fmt::format("'{}{}'", module, kScales));
  }
  return join(module, *encoding, tensors.at(weight_name), scales, tensors.at(biases_name));
}

// A module without scales is one of floats, whatever `quantization` says of it: so `dump` writes a
// quantised model.
Status check_is_plain(const Json& quantization, const std::string& name, const TensorView& view) {
  if (quantization.is_null()) return Ok{};
  const bool is_words = name.ends_with(kWeight) && view.encoding == Encoding::kU32;
  if (!is_words && !name.ends_with(kBiases)) return Ok{};
  return contradiction(fmt::format("tensor '{}' has no scales", name), "'scales' beside it",
                       described(view));
}

void restore_convolution(const std::string& name, TensorView& view) {
  auto& shape = view.shape;
  if (name.ends_with(".conv.conv.weight") && shape.size() == 3 && shape[2] == 1)
    std::swap(shape[1], shape[2]);
}

}  // namespace

Error quantised_error(const std::string& source, std::string actual) {
  return Error{.what = fmt::format("'{}' has quantised weights", source),
               .expected = "F32, F16 or BF16 weights, MLX's affine ones, or a GGUF file",
               .actual = std::move(actual),
               .fix = "Use the original checkpoint; it is quantised when it is loaded."};
}

Result<Json> quantization_in(const Json& config, const std::string& source) {
  Json found;
  const Json* inner = json_find(config, "text_config");
  for (const Json* object : {&config, inner}) {
    if (object == nullptr) continue;
    for (const char* key : {"quantization", "quantization_config"}) {
      const Json* value = json_find(*object, key);
      if (value == nullptr) continue;
      // Of the two tools that write these keys, transformers names its method.
      if (!value->is_object() || value->contains("quant_method") || !value->contains("bits")) {
        return quantised_error(source, fmt::format("'{}' in config.json", key));
      }
      if (!found.is_null() && found != *value) {
        return quantised_error(source, "two quantisations in config.json that differ");
      }
      found = *value;
    }
  }
  if (!found.is_null()) RETURN_IF_ERROR(affine_encoding(found, "'quantization' in config.json"));
  return found;
}

Result<std::map<std::string, TensorView>> from_mlx(const Json& quantization,
                                                   std::map<std::string, TensorView> tensors) {
  std::map<std::string, TensorView> joined;
  for (const auto& [name, view] : tensors) {
    if (!name.ends_with(kScales)) continue;
    const std::string module = name.substr(0, name.size() - kScales.size());
    // A model that is not quantised may call a tensor so.
    const auto weight = tensors.find(module + std::string(kWeight));
    const bool has_words = weight != tensors.end() && weight->second.encoding == Encoding::kU32;
    if (quantization.is_null() && !has_words) continue;
    ASSIGN_OR_RETURN(joined[module], join_module(quantization, module, view, tensors));
  }
  for (auto& [module, view] : joined) {
    tensors.erase(module + std::string(kScales));
    tensors.erase(module + std::string(kBiases));
    tensors[module + std::string(kWeight)] = std::move(view);
  }
  for (auto& [name, view] : tensors) {
    if (!encoding_info(view.encoding).scales_beside)
      RETURN_IF_ERROR(check_is_plain(quantization, name, view));
    restore_convolution(name, view);
  }
  return tensors;
}

}  // namespace espalier::formats
