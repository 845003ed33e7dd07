#include "espalier/text/pretokenizer.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "espalier/base/utf8.h"
#include "espalier/text/byte_level.h"
#include "espalier/text/pipeline_json.h"
#include "espalier/text/split_behavior.h"
#include "espalier/text/unicode.h"

namespace espalier::text {
namespace {

using StepResult = Result<PreTokenizerStep>;

// GPT-2's pattern, which the ByteLevel part carries inside.
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Cuts every piece by find(piece, matches) and the behaviour.
template <typename Find>
Status split_pieces(PieceList& list, SplitBehavior behavior, Find find) {
  std::vector<Span> pieces;
  pieces.reserve(list.pieces.size());
  std::vector<Match> matches;
  std::vector<Span> parts;
  for (const Span& piece : list.pieces) {
    RETURN_IF_ERROR(find(list.text.view(piece), matches));
    apply_behavior(matches, behavior, parts);
    for (const Span& part : parts) {
      if (part.begin < part.end)
        pieces.push_back({piece.begin + part.begin, piece.begin + part.end});
    }
  }
  list.pieces = std::move(pieces);
  return Ok{};
}

// Every character that satisfies the predicate is a match of its own.
template <typename Predicate>
Status split_characters(PieceList& list, SplitBehavior behavior, Predicate predicate) {
  return split_pieces(list, behavior,
                      [&](std::string_view piece, std::vector<Match>& matches) -> Status {
                        matches.clear();
                        size_t covered = 0;
                        for (size_t i = 0; i < piece.size();) {
                          const Character c = character_at(piece, i);
                          const Span span{i, i + c.size};
                          i = span.end;
                          if (!predicate(c.code_point)) continue;
                          if (covered < span.begin)
                            matches.push_back({{covered, span.begin}, false});
                          matches.push_back({span, true});
                          covered = span.end;
                        }
                        if (covered < piece.size())
                          matches.push_back({{covered, piece.size()}, false});
                        return Ok{};
                      });
}

// Rewrites every piece by rule(piece, rewrite); what lies between pieces goes.
template <typename Rule>
void rewrite_pieces(PieceList& list, Rule rule) {
  Rewrite rewrite(list.text);
  std::vector<Span> pieces;
  pieces.reserve(list.pieces.size());
  for (const Span& piece : list.pieces) {
    const size_t begin = rewrite.size();
    rule(piece, rewrite);
    pieces.push_back({begin, rewrite.size()});
  }
  list.text = rewrite.take();
  list.pieces = std::move(pieces);
}

StepResult read_byte_level(const Json& part) {
  ASSIGN_OR_RETURN(const bool add_prefix_space, json_bool(part, "add_prefix_space"));
  ASSIGN_OR_RETURN(const bool use_regex, json_bool_or(part, "use_regex", true));
  std::shared_ptr<const Regex> regex;
  if (use_regex) {
    ASSIGN_OR_RETURN(Regex compiled, Regex::compile(kGpt2Pattern));
    regex = std::make_shared<const Regex>(std::move(compiled));
  }
  return PreTokenizerStep([add_prefix_space, regex](PieceList& list) -> Status {
    if (add_prefix_space) {
      rewrite_pieces(list, [&](Span piece, Rewrite& rewrite) {
        if (list.text.text[piece.begin] != ' ') rewrite.put(" ", piece.begin);
        rewrite.keep(piece);
      });
    }
    if (regex != nullptr) {
      RETURN_IF_ERROR(split_pieces(list, SplitBehavior::kIsolated,
                                   [&](std::string_view piece, std::vector<Match>& matches) {
                                     return regex->find_all(piece, matches);
                                   }));
    }
    rewrite_pieces(list, [&](Span piece, Rewrite& rewrite) {
      for (size_t i = piece.begin; i < piece.end; ++i) {
        rewrite.put(byte_level_character(static_cast<unsigned char>(list.text.text[i])), i);
      }
    });
    return Ok{};
  });
}

StepResult read_split(const Json& part) {
  ASSIGN_OR_RETURN(Regex compiled, read_pattern(part));
  ASSIGN_OR_RETURN(const std::string name, json_string(part, "behavior"));
  ASSIGN_OR_RETURN(const SplitBehavior behavior, split_behavior_from_name(name));
  ASSIGN_OR_RETURN(const bool invert, json_bool_or(part, "invert", false));
  const auto regex = std::make_shared<const Regex>(std::move(compiled));
  return PreTokenizerStep([regex, behavior, invert](PieceList& list) -> Status {
    return split_pieces(list, behavior,
                        [&](std::string_view piece, std::vector<Match>& matches) -> Status {
                          RETURN_IF_ERROR(regex->find_all(piece, matches));
                          if (!invert) return Ok{};
                          for (Match& match : matches) match.is_match = !match.is_match;
                          return Ok{};
                        });
  });
}

StepResult read_digits(const Json& part) {
  ASSIGN_OR_RETURN(const bool individual, json_bool_or(part, "individual_digits", false));
  const auto behavior = individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
  return PreTokenizerStep(
      [behavior](PieceList& list) { return split_characters(list, behavior, is_numeric); });
}

enum class PrependScheme { kFirst, kNever, kAlways };

Result<PrependScheme> read_prepend_scheme(const Json& part) {
  ASSIGN_OR_RETURN(const std::string name, json_string_or(part, "prepend_scheme", "always"));
  ASSIGN_OR_RETURN(const bool add_prefix_space, json_bool_or(part, "add_prefix_space", true));
  if (name != "first" && name != "never" && name != "always") {
    return unknown_part("prepend_scheme", name, "first, never or always");
  }
  if (!add_prefix_space && name != "never" && json_find(part, "prepend_scheme") != nullptr) {
    return unknown_part("prepend_scheme", name, "never, to agree with add_prefix_space");
  }
  if (!add_prefix_space || name == "never") return PrependScheme::kNever;
  return name == "first" ? PrependScheme::kFirst : PrependScheme::kAlways;
}

StepResult read_metaspace(const Json& part) {
  ASSIGN_OR_RETURN(const std::string replacement, read_character(part, "replacement"));
  ASSIGN_OR_RETURN(const PrependScheme scheme, read_prepend_scheme(part));
  ASSIGN_OR_RETURN(const bool split, json_bool_or(part, "split", true));
  return PreTokenizerStep([replacement, scheme, split](PieceList& list) -> Status {
    rewrite_pieces(list, [&](Span piece, Rewrite& rewrite) {
      const std::string_view text = list.text.view(piece);
      const bool has_prefix = text.starts_with(' ') || text.starts_with(replacement);
      const bool prepends =
          scheme == PrependScheme::kAlways ||
          (scheme == PrependScheme::kFirst && list.text.sources[piece.begin] == 0);
      if (prepends && !has_prefix) rewrite.put(replacement, piece.begin);
      for (size_t i = piece.begin; i < piece.end; ++i) {
        if (list.text.text[i] == ' ') {
          rewrite.put(replacement, i);
        } else {
          rewrite.keep({i, i + 1});
        }
      }
    });
    if (!split) return Ok{};
    const char32_t mark = character_at(replacement, 0).code_point;
    return split_characters(list, SplitBehavior::kMergedWithNext,
                            [mark](char32_t c) { return c == mark; });
  });
}

// \w+|[^\w\s]+ : runs of word characters, and runs of what is neither that nor blank.
StepResult read_whitespace(const Json&) {
  return PreTokenizerStep([](PieceList& list) -> Status {
    return split_pieces(list, SplitBehavior::kRemoved,
                        [](std::string_view piece, std::vector<Match>& matches) -> Status {
                          matches.clear();
                          enum class Kind { kBlank, kWord, kOther } last = Kind::kBlank;
                          for (size_t i = 0; i < piece.size();) {
                            const Character c = character_at(piece, i);
                            const Kind kind = is_white_space(c.code_point) ? Kind::kBlank
                                              : is_word(c.code_point)      ? Kind::kWord
                                                                           : Kind::kOther;
                            if (matches.empty() || kind != last) {
                              matches.push_back({{i, i}, kind == Kind::kBlank});
                            }
                            last = kind;
                            matches.back().span.end = i += c.size;
                          }
                          return Ok{};
                        });
  });
}

template <bool (*kPredicate)(char32_t), SplitBehavior kBehavior>
StepResult read_predicate(const Json&) {
  return PreTokenizerStep(
      [](PieceList& list) { return split_characters(list, kBehavior, kPredicate); });
}

StepResult read_punctuation(const Json& part) {
  ASSIGN_OR_RETURN(const std::string name, json_string_or(part, "behavior", "Isolated"));
  ASSIGN_OR_RETURN(const SplitBehavior behavior, split_behavior_from_name(name));
  return PreTokenizerStep(
      [behavior](PieceList& list) { return split_characters(list, behavior, is_punctuation); });
}

StepResult read_bert(const Json&) {
  return PreTokenizerStep([](PieceList& list) -> Status {
    RETURN_IF_ERROR(split_characters(list, SplitBehavior::kRemoved, is_white_space));
    return split_characters(list, SplitBehavior::kIsolated, is_punctuation);
  });
}

StepResult read_delimiter(const Json& part) {
  ASSIGN_OR_RETURN(const std::string text, read_character(part, "delimiter"));
  const char32_t delimiter = character_at(text, 0).code_point;
  return PreTokenizerStep([delimiter](PieceList& list) {
    return split_characters(list, SplitBehavior::kRemoved,
                            [delimiter](char32_t c) { return c == delimiter; });
  });
}

StepResult read_fixed_length(const Json& part) {
  ASSIGN_OR_RETURN(const int64_t length, json_integer_or(part, "length", 5));
  if (length < 1) return unknown_part("length", std::to_string(length), "at least 1");
  return PreTokenizerStep([length](PieceList& list) -> Status {
    return split_pieces(list, SplitBehavior::kIsolated,
                        [length](std::string_view piece, std::vector<Match>& matches) -> Status {
                          matches.clear();
                          int64_t count = 0;
                          for (size_t i = 0; i < piece.size(); ++count) {
                            if (count % length == 0) matches.push_back({{i, i}, true});
                            matches.back().span.end = i += character_at(piece, i).size;
                          }
                          return Ok{};
                        });
  });
}

constexpr PipelinePart<PreTokenizerStep> kParts[] = {
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Digits", read_digits},
    {"Metaspace", read_metaspace},
    {"Whitespace", read_whitespace},
    {"WhitespaceSplit", read_predicate<is_white_space, SplitBehavior::kRemoved>},
    {"Punctuation", read_punctuation},
    {"BertPreTokenizer", read_bert},
    {"CharDelimiterSplit", read_delimiter},
    {"FixedLength", read_fixed_length},
};

// Whether a Metaspace with prepend_scheme "first" is anywhere in the tree.
bool has_first_scheme(const Json& part) {
  if (!part.is_structured()) return part.is_string() && part == "first";
  return std::any_of(part.begin(), part.end(),
                     [](const Json& member) { return has_first_scheme(member); });
}

}  // namespace

Result<PreTokenizer> PreTokenizer::make(const Json& json) {
  std::vector<PreTokenizerStep> steps;
  RETURN_IF_ERROR(read_steps(json, "pre-tokenizer", "pretokenizers",
                             std::span<const PipelinePart<PreTokenizerStep>>(kParts), steps));
  return PreTokenizer(std::move(steps), has_first_scheme(json));
}

Result<PieceList> PreTokenizer::split(SourcedText text) const {
  PieceList list;
  if (!text.text.empty()) list.pieces.push_back({0, text.text.size()});
  list.text = std::move(text);
  for (const PreTokenizerStep& step : steps_) {
    RETURN_IF_ERROR(step(list));
    RETURN_IF_ERROR(list.text.check_budget());
  }
  return list;
}

}  // namespace espalier::text
