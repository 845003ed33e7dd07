#include "espalier/formats/gguf_pretokenizer.h"

#include <array>
#include <iterator>
#include <string_view>

namespace espalier::formats {
namespace {

constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCjkPattern = "[一-龥぀-ゟ゠-ヿ]+";
constexpr const char* kDeepSeek3Pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

using Patterns = std::array<const char*, 3>;  // splits, in order; null: none

struct Row {
  std::string_view name;
  Patterns patterns;
  bool splits_digits;      // one by one, before the byte level
  bool uses_gpt2_pattern;  // of the byte level itself
  bool normalizes;         // NFC, as the models' own tokenizer.json does
  bool ignore_merges;
  bool add_bos;
};

constexpr Row gpt2(std::string_view name) { return {name, {}, false, true, false, false, false}; }
constexpr Row with_digits(std::string_view name) {
  return {name, {}, true, true, false, false, false};
}
constexpr Row llama3(std::string_view name) {
  return {name, {kLlama3Pattern}, false, false, false, true, true};
}

constexpr Row kRows[] = {
    gpt2("default"),
    gpt2("gpt-2"),
    gpt2("gpt2"),
    gpt2("phi-2"),
    gpt2("mpt"),
    gpt2("olmo"),
    with_digits("smollm"),
    with_digits("starcoder"),
    with_digits("refact"),
    with_digits("codeshell"),
    with_digits("command-r"),
    llama3("llama3"),
    llama3("llama-v3"),
    llama3("llama-bpe"),
    llama3("lfm2"),
    llama3("falcon3"),
    llama3("pixtral"),
    {"smaug-bpe", {kLlama3Pattern}, false, false, false, false, false},
    {"dbrx", {kLlama3Pattern}, false, false, false, false, false},
    {"qwen2", {kQwen2Pattern}, false, false, true, false, false},
    {"deepseek-r1-qwen", {kQwen2Pattern}, false, false, false, false, false},
    {"tekken", {kTekkenPattern}, false, false, false, true, true},
    {"gpt-4o", {kGpt4oPattern}, false, false, false, false, false},
    {"deepseek-v3",
     {"\\p{N}{1,3}", kCjkPattern, kDeepSeek3Pattern},
     false,
     false,
     false,
     false,
     false},
};

Json split(const char* pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

}  // namespace

Result<GgufPretokenizer> gguf_pretokenizer(const std::string& name) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.name != name) {
      known += (known.empty() ? "" : ", ") + std::string(row.name);
      continue;
    }
    Json parts = Json::array();
    for (const char* pattern : row.patterns) {
      if (pattern != nullptr) parts.push_back(split(pattern));
    }
    if (row.splits_digits) parts.push_back({{"type", "Digits"}, {"individual_digits", true}});
    parts.push_back(
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", row.uses_gpt2_pattern}});
    return GgufPretokenizer{
        .normalizer = row.normalizes ? Json{{"type", "NFC"}} : Json(),
        .pre_tokenizer = {{"type", "Sequence"}, {"pretokenizers", std::move(parts)}},
        .ignore_merges = row.ignore_merges,
        .add_bos = row.add_bos};
  }
  return Error{.what = "tokenizer.ggml.pre names a pre-tokenizer that is not known",
               .expected = known,
               .actual = "'" + name + "'",
               .fix = "Use the model's Hugging Face directory with its tokenizer.json."};
}

}  // namespace espalier::formats
