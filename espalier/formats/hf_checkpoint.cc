#include "espalier/formats/hf_checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "espalier/base/mapped_file.h"
#include "espalier/base/utf8.h"
#include "espalier/formats/mlx_checkpoint.h"
#include "espalier/formats/safetensors.h"
#include "espalier/formats/tokenizer_json.h"

namespace espalier::formats {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConfigBytesLimit = 16u << 20;
constexpr size_t kTokenizerBytesLimit = 256u << 20;

// What is read besides the weights, where it is there.
constexpr std::array kTextFiles = {
    "config.json",           "generation_config.json",  "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
    "chat_template.json"};

// What multimodal exports put around the names of their language model, and the names without it.
struct Prefix {
  std::string_view from;
  std::string_view to;
};
constexpr std::array kPrefixes = {
    Prefix{"model.language_model.model.", "model."},
    Prefix{"model.language_model.lm_head.", "lm_head."},
    Prefix{"model.language_model.", "model."},
    Prefix{"language_model.", ""},
};

std::string without_prefix(const std::string& name) {
  for (const Prefix& prefix : kPrefixes) {
    if (name.starts_with(prefix.from))
      return std::string(prefix.to) + name.substr(prefix.from.size());
  }
  return name;
}

// A text model keeps its names; of a multimodal one the text tensors get a text model's.
Result<std::map<std::string, TensorView>> strip_prefixes(
    std::map<std::string, TensorView> tensors) {
  if (tensors.contains("model.embed_tokens.weight")) return tensors;
  std::map<std::string, TensorView> stripped;
  for (auto& [name, view] : tensors) {
    if (stripped.emplace(without_prefix(name), std::move(view)).second) continue;
    return Error{.what = fmt::format("tensor '{}' means a tensor that is there already", name),
                 .expected = fmt::format("one tensor for '{}'", without_prefix(name)),
                 .actual = "two",
                 .fix = "Save the checkpoint again with one language model in it."};
  }
  return stripped;
}

// True also where it cannot be told (a directory without permission): reading says what it is.
bool is_there(const fs::path& path) {
  std::error_code problem;
  return fs::exists(path, problem) || problem;
}

// Absent files are null.
Result<Json> read_json(const fs::path& path, size_t limit_bytes) {
  if (!is_there(path)) return Json();
  ASSIGN_OR_RETURN(const std::string text, read_text_file(path.string(), limit_bytes));
  ASSIGN_OR_RETURN(Json json, parse_json(text, path.string()));
  if (json.is_object()) return json;
  return Error{.what = path.string() + ": not a configuration",
               .expected = "a JSON object",
               .actual = json.type_name(),
               .fix = "Download the file again."};
}

// A multimodal configuration has the language model's in "text_config"; what that leaves out is
// above it.
Json text_config(Json config) {
  const Json* inner = json_find(config, "text_config");
  if (inner == nullptr || !inner->is_object() || config.contains("hidden_size")) return config;
  Json text = *inner;
  for (const auto& [key, value] : config.items()) {
    if (!value.is_object()) text.emplace(key, value);
  }
  return text;
}

Result<Json> read_config(const fs::path& directory, const std::string& weights_path) {
  ASSIGN_OR_RETURN(Json config, read_json(directory / "config.json", kConfigBytesLimit));
  if (config.is_null()) {
    const bool is_file = !weights_path.empty();
    return Error{.what = is_file ? fmt::format("'{}' is only the weights of a model", weights_path)
                                 : fmt::format("'{}' is not a model directory", directory.string()),
                 .expected = is_file ? "config.json beside it" : "config.json in it",
                 .actual = "no such file",
                 .fix = "Name a GGUF file, or a directory with config.json and model.safetensors."};
  }
  return config;
}

// FP8 weights mean nothing without the scales that lie beside them, and there are several
// conventions for those.
Status check_no_scales(const fs::path& directory,
                       const std::map<std::string, TensorView>& tensors) {
  for (const auto& [name, view] : tensors) {
    if (view.encoding != Encoding::kF8E4M3 && view.encoding != Encoding::kF8E5M2) continue;
    const std::string stem = name.substr(0, name.rfind('.'));
    for (const std::string& scale :
         {name + "_scale", name + "_scale_inv", stem + ".scale_weight", stem + ".scale"}) {
      if (!tensors.contains(scale)) continue;
      return quantised_error(directory.string(), fmt::format("'{}' in {} with its scales in '{}'",
                                                             name, name_of(view.encoding), scale));
    }
  }
  return Ok{};
}

// "model-00001-of-00007.safetensors" has a seventh of the tensors.
Status check_is_whole(const std::string& weights_path) {
  const std::string name = fs::path(weights_path).filename().string();
  const std::string form = "-NNNNN-of-NNNNN.safetensors";
  if (name.size() <= form.size()) return Ok{};
  const std::string end = name.substr(name.size() - form.size());
  const bool is_shard = std::equal(form.begin(), form.end(), end.begin(), [](char f, char c) {
    return f == 'N' ? c >= '0' && c <= '9' : f == c;
  });
  if (!is_shard || end.substr(10, 5) == "00001") return Ok{};
  return Error{.what = fmt::format("'{}' is one file of several", weights_path),
               .expected = "all of the model's weights",
               .actual = fmt::format("file {} of {}", end.substr(1, 5), end.substr(10, 5)),
               .fix = "Name the directory, or its model.safetensors.index.json."};
}

Result<Safetensors> open_weights(const fs::path& directory, const std::string& weights_path) {
  if (weights_path.ends_with(".json")) return open_sharded_safetensors(weights_path);
  if (!weights_path.empty()) return open_safetensors(weights_path);
  const fs::path single = directory / "model.safetensors";
  const fs::path index = directory / "model.safetensors.index.json";
  if (is_there(single)) return open_safetensors(single.string());
  if (is_there(index)) return open_sharded_safetensors(index.string());
  return Error{.what = fmt::format("'{}' has no weights", directory.string()),
               .expected = "model.safetensors or model.safetensors.index.json",
               .actual = "neither",
               .fix = "Download the weights, or name the .safetensors file itself."};
}

// The member `key` as text, or nothing: a string, or an object with the text as its "content".
std::string text_of(const Json& object, const std::string& key) {
  const Json* token = json_find(object, key);
  if (token == nullptr) return {};
  if (const Json* content = json_find(*token, "content")) token = content;
  return token->is_string() ? token->get<std::string>() : "";
}

// chat_template: a template, or a list of named ones, of which the one named "default" counts.
std::optional<std::string> template_in(const Json& object) {
  const Json* value = json_find(object, "chat_template");
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (!value->is_array()) return std::nullopt;
  for (const Json& item : *value) {
    const Json* name = json_find(item, "name");
    const Json* source = json_find(item, "template");
    const bool is_default = name != nullptr && *name == "default";
    if (is_default && source != nullptr && source->is_string()) return source->get<std::string>();
  }
  return std::nullopt;
}

// A file of its own wins over the tokenizer's configuration, as in transformers.
Result<std::optional<std::string>> read_chat_template(const fs::path& directory,
                                                      const Json& tokenizer_config) {
  const fs::path file = directory / "chat_template.jinja";
  if (is_there(file)) {
    ASSIGN_OR_RETURN(std::string source, read_text_file(file.string(), kConfigBytesLimit));
    if (!invalid_utf8_at(source)) return std::optional(std::move(source));
    return Error{.what = fmt::format("'{}' is not a template", file.string()),
                 .expected = "text in UTF-8",
                 .actual = "other bytes",
                 .fix = "Download the file again."};
  }
  if (auto source = template_in(tokenizer_config)) return source;
  ASSIGN_OR_RETURN(const Json other,
                   read_json(directory / "chat_template.json", kConfigBytesLimit));
  return template_in(other);
}

Status read_text_parts(const fs::path& directory, Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const Json config,
                   read_json(directory / "tokenizer_config.json", kConfigBytesLimit));
  ASSIGN_OR_RETURN(const Json special,
                   read_json(directory / "special_tokens_map.json", kConfigBytesLimit));
  ASSIGN_OR_RETURN(const Json tokenizer,
                   read_json(directory / "tokenizer.json", kTokenizerBytesLimit));
  const auto text = [&](const std::string& key) {
    const std::string configured = text_of(config, key);
    return configured.empty() ? text_of(special, key) : configured;
  };
  checkpoint.bos_token = text("bos_token");
  checkpoint.eos_token = text("eos_token");
  ASSIGN_OR_RETURN(checkpoint.chat_template, read_chat_template(directory, config));
  if (!tokenizer.is_null()) {
    ASSIGN_OR_RETURN(checkpoint.tokenizer, read_tokenizer_json(tokenizer, config));
  }
  return Ok{};
}

// The last name of a path, whatever way it is written: "model/", ".", "../model".
std::string directory_name(const fs::path& directory) {
  std::error_code problem;  // without a working directory the path itself has to do
  fs::path path = fs::absolute(directory, problem);
  path = (problem ? directory : path).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

Result<Checkpoint> open_hf_checkpoint(const std::string& directory,
                                      const std::string& weights_path) {
  const fs::path root = directory.empty() ? fs::path(".") : fs::path(directory);
  Checkpoint checkpoint;
  checkpoint.path = weights_path.empty() ? directory : weights_path;
  checkpoint.format = "safetensors";
  RETURN_IF_ERROR(check_is_whole(weights_path));
  ASSIGN_OR_RETURN(Json config, read_config(root, weights_path));
  ASSIGN_OR_RETURN(const Json quantization, quantization_in(config, root.string()));
  checkpoint.config = text_config(std::move(config));
  ASSIGN_OR_RETURN(checkpoint.generation_config,
                   read_json(root / "generation_config.json", kConfigBytesLimit));
  checkpoint.name = text_of(checkpoint.config, "_name_or_path");
  if (checkpoint.name.empty()) checkpoint.name = directory_name(root);
  ASSIGN_OR_RETURN(Safetensors content, open_weights(root, weights_path));
  RETURN_IF_ERROR(check_no_scales(root, content.tensors));
  ASSIGN_OR_RETURN(auto tensors, from_mlx(quantization, std::move(content.tensors)));
  ASSIGN_OR_RETURN(tensors, strip_prefixes(std::move(tensors)));
  checkpoint.weights = Weights::of_files(std::move(tensors), content.owners);
  checkpoint.files = std::move(content.files);
  for (const char* name : kTextFiles) {
    if (is_there(root / name)) checkpoint.files.push_back((root / name).string());
  }
  RETURN_IF_ERROR(read_text_parts(root, checkpoint));
  return checkpoint;
}

}  // namespace espalier::formats
