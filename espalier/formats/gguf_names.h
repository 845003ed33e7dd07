// What GGUF calls the architectures and tensors that Hugging Face has other names for: one table
// per architecture family. Pure functions over constant tables.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace espalier::formats {

// "blk.*.attn_q" -> "model.layers.*.self_attn.q_proj"; `*` is the layer. ".weight" and ".bias" stay
// as they are.
struct GgufTensorName {
  std::string_view gguf;
  std::string_view hugging_face;
};

struct GgufArchitecture {
  std::string_view name;        // general.architecture
  std::string_view model_type;  // of config.json
  bool rope_interleaved;  // rows of q and k are stored permuted: rotate neighbours, not halves
  std::span<const GgufTensorName> tensors;
};

// nullptr for an architecture without a table.
const GgufArchitecture* gguf_architecture(std::string_view name);

// The transformers name of a tensor; a tensor without a row keeps its own.
std::string hugging_face_name(const GgufArchitecture& architecture, const std::string& tensor);

}  // namespace espalier::formats
