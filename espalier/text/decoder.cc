#include "espalier/text/decoder.h"

#include <algorithm>
#include <optional>

#include "espalier/base/utf8.h"
#include "espalier/text/byte_level.h"
#include "espalier/text/pipeline_json.h"

namespace espalier::text {
namespace {

// What a stage hands on: tokens one by one, or parts of a single token as they become certain.
enum class Flow { kTokens, kOneToken };

// A stage of the chain before it is known what flows into it.
struct StageKind {
  std::function<std::unique_ptr<DecodeStage>(Flow input)> make;
  bool joins = false;          // makes one token of all
  bool streams_parts = false;  // also understands the parts of one token; others get it whole
};
using StageResult = Result<StageKind>;

// Joins tokens by blanks: the rule where a tokenizer has no decoder.
class JoinByBlanks : public DecodeStage {
 public:
  void push(std::string token, const DecodeSink& next) override {
    next(is_first_ ? std::move(token) : " " + token);
    is_first_ = false;
  }

 private:
  bool is_first_ = true;
};

// Holds everything back and gives the next stage one token at the end.
class Collect : public DecodeStage {
 public:
  void push(std::string token, const DecodeSink&) override { all_ += token; }
  void finish(const DecodeSink& next) override { next(std::move(all_)); }

 private:
  std::string all_;
};

// Tokens spelled in the byte alphabet become bytes, others stay; the bytes of all tokens are one
// text.
class ByteLevelStage : public DecodeStage {
 public:
  void push(std::string token, const DecodeSink& next) override {
    pending_ += bytes_of(std::move(token));
    emit(false, next);
  }
  void finish(const DecodeSink& next) override { emit(true, next); }
  std::string bytes_of(std::string token) const override {
    std::optional<std::string> bytes = byte_level_bytes(token);
    return bytes ? *std::move(bytes) : token;
  }

 private:
  void emit(bool is_last, const DecodeSink& next) {
    size_t certain = 0;
    while (certain < pending_.size()) {
      const auto sequence = first_utf8_sequence(std::string_view(pending_).substr(certain));
      if (sequence.kind == Utf8Sequence::Kind::kCutOff && !is_last) break;
      certain += sequence.size;
    }
    if (certain == 0) return;
    next(replace_invalid_utf8(std::string_view(pending_).substr(0, certain)));
    pending_.erase(0, certain);
  }
  std::string pending_;  // bytes of an unfinished sequence
};

// <0xNN> tokens become bytes. A run of them is one text if it is valid, otherwise every byte of it
// becomes U+FFFD, so nothing of a run is certain before it ends.
class ByteFallbackStage : public DecodeStage {
 public:
  void push(std::string token, const DecodeSink& next) override {
    if (const std::optional<char> byte = byte_of(token)) {
      run_ += *byte;
      return;
    }
    finish(next);
    next(std::move(token));
  }
  void finish(const DecodeSink& next) override {
    if (run_.empty()) return;
    if (!invalid_utf8_at(run_)) {
      next(run_);
    } else {
      for (size_t i = 0; i < run_.size(); ++i) next(std::string(kReplacementCharacter));
    }
    run_.clear();
  }
  std::string bytes_of(std::string token) const override {
    const std::optional<char> byte = byte_of(token);
    return byte ? std::string(1, *byte) : token;
  }

 private:
  // Rust's from_str_radix accepts a sign, so <0x+A> is a byte too.
  static std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    const std::string digits(token.substr(token[3] == '+' ? 4 : 3, token[3] == '+' ? 1 : 2));
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      return std::nullopt;
    return static_cast<char>(std::stoi(digits, nullptr, 16));
  }
  std::string run_;
};

// Joins all tokens; what follows sees one.
class FuseStage : public DecodeStage {
 public:
  void push(std::string token, const DecodeSink& next) override { next(std::move(token)); }
};

// Drops up to `start` and `stop` copies of a character at the ends of every token, or of the one
// token.
class StripStage : public DecodeStage {
 public:
  StripStage(std::string character, int64_t start, int64_t stop, Flow input)
      : character_(std::move(character)), start_(start), stop_(stop), input_(input) {}

  void push(std::string token, const DecodeSink& next) override {
    if (input_ == Flow::kTokens) dropped_ = 0;
    size_t begin = 0;
    while (dropped_ < start_ && token.compare(begin, character_.size(), character_) == 0 &&
           begin < token.size()) {
      begin += character_.size();
      ++dropped_;
    }
    if (begin < token.size()) dropped_ = start_;  // the next part does not begin the token
    size_t end = token.size();
    for (int64_t i = 0; input_ == Flow::kTokens && i < stop_; ++i) {
      const bool matches =
          end >= begin + character_.size() &&
          token.compare(end - character_.size(), character_.size(), character_) == 0;
      if (!matches) break;
      end -= character_.size();
    }
    next(token.substr(begin, end - begin));
  }

 private:
  std::string character_;
  int64_t start_, stop_;
  Flow input_;
  int64_t dropped_ = 0;  // copies at the beginning, or `start_` once past it
};

class ReplaceStage : public DecodeStage {
 public:
  ReplaceStage(std::shared_ptr<const Regex> regex, std::string content)
      : regex_(std::move(regex)), content_(std::move(content)) {}

  void push(std::string token, const DecodeSink& next) override {
    next(bytes_of(std::move(token)));
  }
  // A pattern that gives up on a token leaves it as it is, and so does one that would make it
  // longer without measure: decoding has no way to fail.
  std::string bytes_of(std::string token) const override {
    std::vector<Match> matches;
    if (!regex_->find_all(token, matches).ok()) return token;
    std::string out;
    for (const Match& match : matches) {
      out += match.is_match ? std::string_view(content_)
                            : std::string_view(token).substr(match.span.begin,
                                                             match.span.end - match.span.begin);
      if (out.size() > std::max(token.size(), kGrownBytesLimit)) return token;
    }
    return out;
  }

 private:
  static constexpr size_t kGrownBytesLimit = 1u << 20;  // tokens have a few bytes

  std::shared_ptr<const Regex> regex_;
  std::string content_;
};

// The meta character becomes a blank; in the first token it goes, unless nothing was prepended.
class MetaspaceStage : public DecodeStage {
 public:
  MetaspaceStage(std::string meta, bool prepends, Flow input)
      : meta_(std::move(meta)), prepends_(prepends), input_(input) {}

  void push(std::string token, const DecodeSink& next) override {
    next(replaced(token, is_first_ && prepends_ ? "" : " "));
    if (input_ == Flow::kTokens) is_first_ = false;
  }
  std::string bytes_of(std::string token) const override { return replaced(token, " "); }

 private:
  std::string replaced(std::string_view token, std::string_view blank) const {
    std::string out;
    while (!token.empty()) {
      const size_t size = character_at(token, 0).size;
      out += token.starts_with(meta_) ? blank : token.substr(0, size);
      token.remove_prefix(size);
    }
    return out;
  }
  std::string meta_;
  bool prepends_;
  Flow input_;
  bool is_first_ = true;
};

// The end-of-word suffix becomes a blank, and goes in the last token.
class BpeSuffixStage : public DecodeStage {
 public:
  explicit BpeSuffixStage(std::string suffix) : suffix_(std::move(suffix)) {}

  void push(std::string token, const DecodeSink& next) override {
    if (held_) next(replaced(*held_, " "));
    held_ = std::move(token);
  }
  void finish(const DecodeSink& next) override {
    if (held_) next(replaced(*held_, ""));
    held_.reset();
  }
  std::string bytes_of(std::string token) const override { return replaced(token, " "); }

 private:
  std::string replaced(std::string token, std::string_view by) const {
    if (suffix_.empty()) return token;
    for (size_t at = token.find(suffix_); at != std::string::npos; at = token.find(suffix_, at)) {
      token.replace(at, suffix_.size(), by);
      at += by.size();
    }
    return token;
  }
  std::string suffix_;
  std::optional<std::string> held_;
};

StageResult read_byte_level(const Json&) {
  return StageKind{.make = [](Flow) { return std::make_unique<ByteLevelStage>(); }, .joins = true};
}

StageResult read_byte_fallback(const Json&) {
  return StageKind{.make = [](Flow) { return std::make_unique<ByteFallbackStage>(); }};
}

StageResult read_fuse(const Json&) {
  return StageKind{.make = [](Flow) { return std::make_unique<FuseStage>(); },
                   .joins = true,
                   .streams_parts = true};
}

StageResult read_strip(const Json& part) {
  ASSIGN_OR_RETURN(const std::string character, read_character(part, "content"));
  ASSIGN_OR_RETURN(const int64_t start, json_integer(part, "start"));
  ASSIGN_OR_RETURN(const int64_t stop, json_integer(part, "stop"));
  return StageKind{
      .make =
          [=](Flow input) { return std::make_unique<StripStage>(character, start, stop, input); },
      .streams_parts = stop <= 0};
}

StageResult read_replace(const Json& part) {
  ASSIGN_OR_RETURN(Regex compiled, read_pattern(part));
  ASSIGN_OR_RETURN(const std::string content, json_string(part, "content"));
  const auto regex = std::make_shared<const Regex>(std::move(compiled));
  return StageKind{.make = [=](Flow) { return std::make_unique<ReplaceStage>(regex, content); }};
}

StageResult read_metaspace(const Json& part) {
  ASSIGN_OR_RETURN(const std::string meta, read_character(part, "replacement"));
  ASSIGN_OR_RETURN(const std::string scheme, json_string_or(part, "prepend_scheme", "always"));
  ASSIGN_OR_RETURN(const bool add_prefix_space, json_bool_or(part, "add_prefix_space", true));
  const bool prepends = add_prefix_space && scheme != "never";
  return StageKind{
      .make = [=](Flow input) { return std::make_unique<MetaspaceStage>(meta, prepends, input); },
      .streams_parts = true};
}

StageResult read_bpe(const Json& part) {
  ASSIGN_OR_RETURN(const std::string suffix, json_string_or(part, "suffix", "</w>"));
  return StageKind{.make = [=](Flow) { return std::make_unique<BpeSuffixStage>(suffix); }};
}

StageResult read_unsupported(const Json&) {
  return Error{.what = "this decoder is not supported",
               .expected = "a decoder of a BPE tokenizer",
               .actual = "one that cleans up the text of WordPiece or CTC models",
               .fix = "Use a BPE tokenizer."};
}

constexpr PipelinePart<StageKind> kParts[] = {
    {"ByteLevel", read_byte_level},
    {"ByteFallback", read_byte_fallback},
    {"Fuse", read_fuse},
    {"Strip", read_strip},
    {"Replace", read_replace},
    {"Metaspace", read_metaspace},
    {"BPEDecoder", read_bpe},
    {"WordPiece", read_unsupported},
    {"CTC", read_unsupported},
};

}  // namespace

DecodeStream::DecodeStream(std::vector<std::unique_ptr<DecodeStage>> stages)
    : stages_(std::move(stages)) {}

DecodeSink DecodeStream::sink_after(size_t stage, std::string& out) {
  if (stage + 1 == stages_.size()) return [&out](const std::string& token) { out += token; };
  return [this, stage, &out](std::string token) {
    stages_[stage + 1]->push(std::move(token), sink_after(stage + 1, out));
  };
}

std::string DecodeStream::push(std::string_view token) {
  if (stages_.empty()) return std::string(token);
  std::string out;
  stages_[0]->push(std::string(token), sink_after(0, out));
  return out;
}

std::string DecodeStream::finish() {
  std::string out;
  for (size_t i = 0; i < stages_.size(); ++i) stages_[i]->finish(sink_after(i, out));
  return out;
}

std::string DecodeStream::bytes_of(std::string_view token) const {
  std::string bytes(token);
  for (const auto& stage : stages_) {
    std::string next = stage->bytes_of(bytes);
    const bool are_raw = invalid_utf8_at(next).has_value();  // no later stage can read them
    bytes = std::move(next);
    if (are_raw) break;
  }
  return bytes;
}

Result<Decoder> Decoder::make(const Json& json) {
  std::vector<StageMaker> makers;
  if (json.is_null()) {
    makers.emplace_back([] { return std::make_unique<JoinByBlanks>(); });
    return Decoder(std::move(makers));
  }
  std::vector<StageKind> kinds;
  RETURN_IF_ERROR(read_steps(json, "decoder", "decoders",
                             std::span<const PipelinePart<StageKind>>(kParts), kinds));
  Flow flow = Flow::kTokens;
  for (const StageKind& kind : kinds) {
    if (flow == Flow::kOneToken && !kind.streams_parts) {
      makers.emplace_back([] { return std::make_unique<Collect>(); });
      flow = Flow::kTokens;  // of which there is one
    }
    makers.emplace_back([make = kind.make, flow] { return make(flow); });
    if (kind.joins) flow = Flow::kOneToken;
  }
  return Decoder(std::move(makers));
}

DecodeStream Decoder::start() const {
  std::vector<std::unique_ptr<DecodeStage>> stages;
  stages.reserve(makers_.size());
  for (const StageMaker& make : makers_) stages.push_back(make());
  return DecodeStream(std::move(stages));
}

}  // namespace espalier::text
