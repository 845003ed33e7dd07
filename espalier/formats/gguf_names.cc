#include "espalier/formats/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace espalier::formats {
namespace {

constexpr std::array kLlamaTensors = {
    GgufTensorName{"token_embd", "model.embed_tokens"},
    GgufTensorName{"output_norm", "model.norm"},
    GgufTensorName{"output", "lm_head"},
    GgufTensorName{"blk.*.attn_norm", "model.layers.*.input_layernorm"},
    GgufTensorName{"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    GgufTensorName{"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    GgufTensorName{"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    GgufTensorName{"blk.*.attn_output", "model.layers.*.self_attn.o_proj"},
    GgufTensorName{"blk.*.attn_q_norm", "model.layers.*.self_attn.q_norm"},
    GgufTensorName{"blk.*.attn_k_norm", "model.layers.*.self_attn.k_norm"},
    GgufTensorName{"blk.*.ffn_norm", "model.layers.*.post_attention_layernorm"},
    GgufTensorName{"blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"},
    GgufTensorName{"blk.*.ffn_up", "model.layers.*.mlp.up_proj"},
    GgufTensorName{"blk.*.ffn_down", "model.layers.*.mlp.down_proj"},
};

constexpr std::array kLfm2Tensors = {
    GgufTensorName{"token_embd", "model.embed_tokens"},
    GgufTensorName{"token_embd_norm",
                   "model.embedding_norm"},                 // the final norm, whatever it is called
    GgufTensorName{"output_norm", "model.embedding_norm"},  // as some converters call it
    GgufTensorName{"output", "lm_head"},
    GgufTensorName{"blk.*.attn_norm", "model.layers.*.operator_norm"},  // of convolution layers too
    GgufTensorName{"blk.*.shortconv.in_proj", "model.layers.*.conv.in_proj"},
    GgufTensorName{"blk.*.shortconv.conv", "model.layers.*.conv.conv"},
    GgufTensorName{"blk.*.shortconv.out_proj", "model.layers.*.conv.out_proj"},
    GgufTensorName{"blk.*.attn_q", "model.layers.*.self_attn.q_proj"},
    GgufTensorName{"blk.*.attn_k", "model.layers.*.self_attn.k_proj"},
    GgufTensorName{"blk.*.attn_v", "model.layers.*.self_attn.v_proj"},
    GgufTensorName{"blk.*.attn_output", "model.layers.*.self_attn.out_proj"},
    GgufTensorName{"blk.*.attn_q_norm", "model.layers.*.self_attn.q_layernorm"},
    GgufTensorName{"blk.*.attn_k_norm", "model.layers.*.self_attn.k_layernorm"},
    GgufTensorName{"blk.*.ffn_norm", "model.layers.*.ffn_norm"},
    GgufTensorName{"blk.*.ffn_gate", "model.layers.*.feed_forward.w1"},
    GgufTensorName{"blk.*.ffn_up", "model.layers.*.feed_forward.w3"},
    GgufTensorName{"blk.*.ffn_down", "model.layers.*.feed_forward.w2"},
};

constexpr std::array kArchitectures = {
    GgufArchitecture{"llama", "llama", true, kLlamaTensors},  // Mistral, too
    GgufArchitecture{"qwen2", "qwen2", false, kLlamaTensors},
    GgufArchitecture{"qwen3", "qwen3", false, kLlamaTensors},
    GgufArchitecture{"lfm2", "lfm2", false, kLfm2Tensors},
};

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

const GgufArchitecture* gguf_architecture(std::string_view name) {
  for (const GgufArchitecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string hugging_face_name(const GgufArchitecture& architecture, const std::string& tensor) {
  const size_t dot = std::min(tensor.rfind('.'), tensor.size());
  const std::string kind = tensor.substr(dot);
  if (kind != ".weight" && kind != ".bias") return tensor;
  std::string pattern = tensor.substr(0, dot);
  std::string layer;
  if (constexpr std::string_view kLayers = "blk."; pattern.starts_with(kLayers)) {
    const std::string rest = pattern.substr(kLayers.size());
    layer = rest.substr(0, rest.find('.'));
    if (!is_number(layer)) return tensor;
    pattern = fmt::format("{}*{}", kLayers, rest.substr(layer.size()));
  }
  for (const GgufTensorName& row : architecture.tensors) {
    if (row.gguf != pattern) continue;
    const std::string_view name = row.hugging_face;
    if (layer.empty()) return fmt::format("{}{}", name, kind);
    const size_t star = name.find('*');
    return fmt::format("{}{}{}{}", name.substr(0, star), layer, name.substr(star + 1), kind);
  }
  return tensor;
}

}  // namespace espalier::formats
