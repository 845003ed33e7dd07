// The small tokenizers of tests/golden/text/tokenizer, for tests that need one of a kind or all.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/formats/gguf.h"
#include "espalier/formats/gguf_tokenizer.h"
#include "espalier/formats/tokenizer_json.h"
#include "espalier/text/tokenizer.h"

namespace espalier::text {

struct GoldenTokenizer {
  std::string name;
  Tokenizer tokenizer;
  Json cases;  // {"encode": [{text, add, ids}], "decode": [{ids, skip, text}]}
};

inline std::string golden_path(const std::string& file) {
  return std::string(ESPALIER_SOURCE_DIR) + "/tests/golden/text/tokenizer/" + file;
}

inline Json golden_json(const std::string& file) {
  auto text = read_text_file(golden_path(file));
  auto json = text.ok() ? parse_json(*text, file) : Result<Json>(text.error());
  CHECK(json.ok());
  return *json;
}

inline TokenizerData golden_data(const std::string& name, const Json& cases) {
  if (cases.contains("tokenizer")) {
    auto data = formats::read_tokenizer_json(cases.at("tokenizer"), Json());
    CHECK(data.ok());
    return *data;
  }
  auto gguf = formats::open_gguf(golden_path(name + ".gguf"));
  CHECK(gguf.ok());
  auto data = formats::read_gguf_tokenizer(gguf->metadata);
  CHECK(data.ok());
  return *data;
}

inline GoldenTokenizer golden_tokenizer(const std::string& name) {
  Json cases = golden_json(name + ".json");
  auto tokenizer = Tokenizer::make(golden_data(name, cases));
  if (!tokenizer.ok()) ADD_FAILURE() << name << ": " << tokenizer.error().message();
  return {name, std::move(tokenizer).value(), std::move(cases)};
}

inline std::vector<std::string> golden_tokenizer_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(""))) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace espalier::text
