// Checkpoints without content: configurations and tensors of the right shapes, for tests that never
// read a weight. All tensors share one buffer of zeros.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/weights.h"

namespace espalier::models {

struct FakeCheckpoint {
  Json config;
  std::map<std::string, TensorView> tensors;

  void add(const std::string& name, std::vector<int64_t> shape) {
    tensors[name] = {Encoding::kF32, std::move(shape), {}};
  }
  void add_to_layers(const std::string& name, const std::vector<int64_t>& shape) {
    for (const char* layer : {"model.layers.0.", "model.layers.1."}) add(layer + name, shape);
  }
  Weights weights() const {
    static const std::vector<std::byte> zeros(1 << 20);
    auto views = tensors;
    for (auto& [name, view] : views) {
      view.bytes = std::span(zeros).first(static_cast<size_t>(view.element_count()) * 4);
    }
    return Weights(std::move(views), {});
  }
};

// Hidden 12, 2 layers, 3 heads over 1 of 4 channels, FFN 20, vocabulary 33, tied.
inline FakeCheckpoint fake_llama(const std::string& model_type = "llama") {
  FakeCheckpoint fake;
  fake.config = {{"model_type", model_type},      {"hidden_size", 12},
                 {"num_hidden_layers", 2},        {"num_attention_heads", 3},
                 {"num_key_value_heads", 1},      {"intermediate_size", 20},
                 {"max_position_embeddings", 64}, {"tie_word_embeddings", true}};
  fake.add("model.embed_tokens.weight", {33, 12});
  fake.add("model.norm.weight", {12});
  fake.add_to_layers("input_layernorm.weight", {12});
  fake.add_to_layers("post_attention_layernorm.weight", {12});
  fake.add_to_layers("self_attn.q_proj.weight", {12, 12});
  fake.add_to_layers("self_attn.k_proj.weight", {4, 12});
  fake.add_to_layers("self_attn.v_proj.weight", {4, 12});
  fake.add_to_layers("self_attn.o_proj.weight", {12, 12});
  fake.add_to_layers("mlp.gate_proj.weight", {20, 12});
  fake.add_to_layers("mlp.up_proj.weight", {20, 12});
  fake.add_to_layers("mlp.down_proj.weight", {12, 20});
  return fake;
}

// q and k of both layers are normed, so qwen3's tensors differ from the others'.
inline FakeCheckpoint fake_qwen3() {
  FakeCheckpoint fake = fake_llama("qwen3");
  fake.add_to_layers("self_attn.q_norm.weight", {4});
  fake.add_to_layers("self_attn.k_norm.weight", {4});
  return fake;
}

inline FakeCheckpoint fake_qwen2() {
  FakeCheckpoint fake = fake_llama("qwen2");
  fake.add_to_layers("self_attn.q_proj.bias", {12});
  fake.add_to_layers("self_attn.k_proj.bias", {4});
  fake.add_to_layers("self_attn.v_proj.bias", {4});
  return fake;
}

// Hidden 12, layers conv and attention, 3 heads over 1, FFN 20, vocabulary 33, tied.
inline FakeCheckpoint fake_lfm2() {
  FakeCheckpoint fake;
  fake.config = {{"model_type", "lfm2"},     {"hidden_size", 12},
                 {"num_hidden_layers", 2},   {"num_attention_heads", 3},
                 {"num_key_value_heads", 1}, {"layer_types", {"conv", "full_attention"}},
                 {"conv_L_cache", 3}};
  fake.add("model.embed_tokens.weight", {33, 12});
  fake.add("model.embedding_norm.weight", {12});
  fake.add_to_layers("operator_norm.weight", {12});
  fake.add_to_layers("ffn_norm.weight", {12});
  fake.add_to_layers("feed_forward.w1.weight", {20, 12});
  fake.add_to_layers("feed_forward.w3.weight", {20, 12});
  fake.add_to_layers("feed_forward.w2.weight", {12, 20});
  fake.add("model.layers.0.conv.in_proj.weight", {36, 12});
  fake.add("model.layers.0.conv.conv.weight", {12, 1, 3});
  fake.add("model.layers.0.conv.out_proj.weight", {12, 12});
  const std::string attention = "model.layers.1.self_attn.";
  fake.add(attention + "q_proj.weight", {12, 12});
  fake.add(attention + "k_proj.weight", {4, 12});
  fake.add(attention + "v_proj.weight", {4, 12});
  fake.add(attention + "out_proj.weight", {12, 12});
  fake.add(attention + "q_layernorm.weight", {4});
  fake.add(attention + "k_layernorm.weight", {4});
  return fake;
}

}  // namespace espalier::models
