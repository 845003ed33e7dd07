// Decoder: tokens to text, from the "decoder" of tokenizer.json, as a chain of stages that tokens
// stream through. Decoder is immutable and may be shared; a DecodeStream is one run through it.
// What a stream has put out never changes, and all of it together is what the `tokenizers`
// library's decode() gives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"

namespace espalier::text {

// Where a stage puts what it has finished: the next stage, or the output.
using DecodeSink = std::function<void(std::string token)>;

class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void push(std::string token, const DecodeSink& next) = 0;
  virtual void finish(const DecodeSink&) {}
  // The bytes behind one token, apart from all others.
  virtual std::string bytes_of(std::string token) const { return token; }
};

class DecodeStream {
 public:
  explicit DecodeStream(std::vector<std::unique_ptr<DecodeStage>> stages);
  // Text (valid UTF-8) that is certain after one more token; may be empty.
  std::string push(std::string_view token);
  // The rest. Afterwards the stream is spent.
  std::string finish();
  std::string bytes_of(std::string_view token) const;

 private:
  DecodeSink sink_after(size_t stage, std::string& out);
  std::vector<std::unique_ptr<DecodeStage>> stages_;
};

class Decoder {
 public:
  using StageMaker = std::function<std::unique_ptr<DecodeStage>()>;

  // `json` may be null: tokens are joined by blanks.
  static Result<Decoder> make(const Json& json);
  DecodeStream start() const;

 private:
  explicit Decoder(std::vector<StageMaker> makers) : makers_(std::move(makers)) {}
  std::vector<StageMaker> makers_;
};

}  // namespace espalier::text
