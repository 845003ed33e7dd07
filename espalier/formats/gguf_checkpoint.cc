#include "espalier/formats/gguf_checkpoint.h"

#include <filesystem>

#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_config.h"
#include "espalier/formats/gguf_names.h"
#include "espalier/formats/gguf_tokenizer.h"

namespace espalier::formats {
namespace {

// The shape that transformers gives a tensor: GGUF drops the middle extent of a depthwise
// convolution, 1.
void restore_shape(const std::string& name, TensorView& view) {
  if (name.ends_with(".conv.conv.weight") && view.shape.size() == 2) {
    view.shape.insert(view.shape.begin() + 1, 1);
  }
}

Result<std::map<std::string, TensorView>> translate(std::map<std::string, TensorView>&& tensors,
                                                    const GgufArchitecture& architecture) {
  std::map<std::string, TensorView> translated;
  for (auto& [gguf_name, view] : tensors) {
    const std::string name = hugging_face_name(architecture, gguf_name);
    restore_shape(name, view);
    if (translated.emplace(name, std::move(view)).second) continue;
    return Error{.what = fmt::format("tensor '{}' means a tensor that is there already", gguf_name),
                 .expected = fmt::format("one tensor for '{}'", name),
                 .actual = "two",
                 .fix = "Convert the model to GGUF again."};
  }
  return translated;
}

std::string token_text(const std::optional<TokenizerData>& tokenizer, std::optional<TokenId> id) {
  if (!tokenizer || !id || *id < 0) return {};
  const auto index = static_cast<size_t>(*id);
  return index < tokenizer->tokens.size() ? tokenizer->tokens[index] : "";
}

Status read_text_parts(const GgufMetadata& metadata, Checkpoint& checkpoint) {
  if (metadata.contains("tokenizer.ggml.tokens")) {
    ASSIGN_OR_RETURN(checkpoint.tokenizer, read_gguf_tokenizer(metadata));
    checkpoint.bos_token = token_text(checkpoint.tokenizer, checkpoint.tokenizer->bos_id);
    checkpoint.eos_token = token_text(checkpoint.tokenizer, checkpoint.tokenizer->eos_id);
  }
  if (metadata.contains("tokenizer.chat_template")) {
    ASSIGN_OR_RETURN(checkpoint.chat_template, metadata.string("tokenizer.chat_template"));
  }
  return Ok{};
}

Result<Checkpoint> translate(Gguf gguf, const std::string& path) {
  const GgufMetadata& metadata = gguf.metadata;
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "gguf";
  ASSIGN_OR_RETURN(checkpoint.config, gguf_config(metadata));
  ASSIGN_OR_RETURN(checkpoint.generation_config, gguf_generation_config(metadata));
  const std::string stem = std::filesystem::path(path).stem().string();
  ASSIGN_OR_RETURN(checkpoint.name, metadata.string_or("general.name", stem));
  ASSIGN_OR_RETURN(const std::string name, metadata.string("general.architecture"));
  if (const GgufArchitecture* architecture = gguf_architecture(name)) {
    ASSIGN_OR_RETURN(gguf.tensors, translate(std::move(gguf.tensors), *architecture));
  }
  RETURN_IF_ERROR(read_text_parts(metadata, checkpoint));
  checkpoint.weights = Weights::of_files(std::move(gguf.tensors), gguf.owners);
  checkpoint.files = std::move(gguf.files);
  return checkpoint;
}

}  // namespace

Result<Checkpoint> open_gguf_checkpoint(const std::string& path) {
  ASSIGN_OR_RETURN(Gguf gguf, open_gguf(path));
  auto checkpoint = translate(std::move(gguf), path);
  if (!checkpoint.ok()) return checkpoint.error().with_context(path);
  return checkpoint;
}

}  // namespace espalier::formats
