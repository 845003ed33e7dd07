// Engines over the tiny checkpoints of tests/golden/models (random weights, made by transformers).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/engine/session.h"

namespace espalier::engine {

inline std::string golden_directory(const std::string& name) {
  return ESPALIER_SOURCE_DIR "/tests/golden/models/" + name;
}

inline Json golden_sequences(const std::string& name) {
  const std::string path = golden_directory(name) + "/golden.json";
  return parse_json(read_text_file(path).value(), path).value()["sequences"];
}

inline std::unique_ptr<const Engine> load_golden(const std::string& name,
                                                 const EngineOptions& options = {}) {
  auto engine = Engine::load(golden_directory(name), options);
  EXPECT_TRUE(engine.ok()) << engine.error().message();
  return std::move(engine).value();
}

inline std::unique_ptr<Session> make_session(const Engine& engine) {
  return Session::create(engine).value();
}

// Token ids below the vocabulary of every golden model, end tokens (0 to 2) avoided.
inline std::vector<TokenId> some_text(size_t length, int seed = 0) {
  std::vector<TokenId> tokens(length);
  for (size_t i = 0; i < length; ++i) {
    tokens[i] =
        static_cast<TokenId>(3 + (i * 37 + i * i * 11 + static_cast<size_t>(seed) * 53) % 90);
  }
  return tokens;
}

inline bool keep_going(const AnswerToken&) { return true; }

}  // namespace espalier::engine
