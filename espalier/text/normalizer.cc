#include "espalier/text/normalizer.h"

#include <memory>

#include "espalier/base/utf8.h"
#include "espalier/text/byte_level.h"
#include "espalier/text/pipeline_json.h"
#include "espalier/text/unicode.h"
#include "espalier/text/unicode_normalize.h"

namespace espalier::text {
namespace {

using StepResult = Result<NormalizerStep>;

// Rewrites a text character by character: rule(character, its bytes and place, rewrite).
template <typename Rule>
void for_each_character(SourcedText& text, Rule rule) {
  Rewrite rewrite(text);
  for (size_t i = 0; i < text.text.size();) {
    const Character c = character_at(text.text, i);
    rule(c.code_point, Span{i, i + c.size}, rewrite);
    i += c.size;
  }
  text = rewrite.take();
}

template <typename Predicate>
void drop_if(SourcedText& text, Predicate drop) {
  for_each_character(text, [&](char32_t c, Span span, Rewrite& rewrite) {
    if (!drop(c)) rewrite.keep(span);
  });
}

void apply_form(SourcedText& text, NormalForm form) {
  Rewrite rewrite(text);
  for (size_t i = 0; i < text.text.size();) {
    const size_t size = normalization_unit(std::string_view(text.text).substr(i));
    const Span span{i, i + size};
    const std::string unit = normalize_unit(text.view(span), form);
    if (unit == text.view(span)) {
      rewrite.keep(span);
    } else {
      rewrite.put(unit, i);
    }
    i += size;
  }
  text = rewrite.take();
}

template <NormalForm kForm>
StepResult read_form(const Json&) {
  return NormalizerStep([](SourcedText& text) -> Status {
    apply_form(text, kForm);
    return Ok{};
  });
}

void lowercase(SourcedText& text) {
  for_each_character(text, [](char32_t c, Span span, Rewrite& rewrite) {
    std::string lower;
    append_lowercase(lower, c);
    rewrite.put(lower, span.begin);
  });
}

StepResult read_lowercase(const Json&) {
  return NormalizerStep([](SourcedText& text) -> Status {
    lowercase(text);
    return Ok{};
  });
}

StepResult read_strip(const Json& part) {
  ASSIGN_OR_RETURN(const bool left, json_bool(part, "strip_left"));
  ASSIGN_OR_RETURN(const bool right, json_bool(part, "strip_right"));
  return NormalizerStep([left, right](SourcedText& text) -> Status {
    Span kept{0, text.text.size()};
    while (left && kept.begin < kept.end) {
      const Character c = character_at(text.text, kept.begin);
      if (!is_white_space(c.code_point)) break;
      kept.begin += c.size;
    }
    while (right && kept.begin < kept.end) {
      const Character c = character_before(text.text, kept.end);
      if (!is_white_space(c.code_point)) break;
      kept.end -= c.size;
    }
    Rewrite rewrite(text);
    rewrite.keep(kept);
    text = rewrite.take();
    return Ok{};
  });
}

StepResult read_strip_accents(const Json&) {
  return NormalizerStep([](SourcedText& text) -> Status {
    drop_if(text, is_combining_mark);
    return Ok{};
  });
}

StepResult read_replace(const Json& part) {
  ASSIGN_OR_RETURN(Regex compiled, read_pattern(part));
  ASSIGN_OR_RETURN(const std::string content, json_string(part, "content"));
  const auto regex = std::make_shared<const Regex>(std::move(compiled));
  return NormalizerStep([regex, content](SourcedText& text) -> Status {
    std::vector<Match> matches;
    RETURN_IF_ERROR(regex->find_all(text.text, matches));
    Rewrite rewrite(text);
    for (const Match& match : matches) {
      if (match.is_match) {
        rewrite.put(content, match.span.end == 0 ? 0 : match.span.end - 1);
      } else {
        rewrite.keep(match.span);
      }
    }
    text = rewrite.take();
    return Ok{};
  });
}

StepResult read_prepend(const Json& part) {
  ASSIGN_OR_RETURN(const std::string prefix, json_string(part, "prepend"));
  return NormalizerStep([prefix](SourcedText& text) -> Status {
    if (text.text.empty()) return Ok{};
    Rewrite rewrite(text);
    rewrite.put(prefix, 0);
    rewrite.keep({0, text.text.size()});
    text = rewrite.take();
    return Ok{};
  });
}

StepResult read_byte_level(const Json&) {
  return NormalizerStep([](SourcedText& text) -> Status {
    Rewrite rewrite(text);
    for (size_t i = 0; i < text.text.size(); ++i) {
      rewrite.put(byte_level_character(static_cast<unsigned char>(text.text[i])), i);
    }
    text = rewrite.take();
    return Ok{};
  });
}

bool dropped_by_nmt(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
         c == 0x8F || c == 0x9F;
}
bool blank_to_nmt(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
         (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
         c == 0xFFFD;
}

// Drops some characters and turns others into blanks.
template <typename Drop, typename Blank>
void clean(SourcedText& text, Drop drop, Blank blank) {
  for_each_character(text, [&](char32_t c, Span span, Rewrite& rewrite) {
    if (drop(c)) return;
    if (blank(c)) {
      rewrite.put(" ", span.begin);
    } else {
      rewrite.keep(span);
    }
  });
}

StepResult read_nmt(const Json&) {
  return NormalizerStep([](SourcedText& text) -> Status {
    clean(text, dropped_by_nmt, blank_to_nmt);
    return Ok{};
  });
}

// The CJK blocks that BERT separates, with the library's gaps.
bool is_chinese_character(char32_t c) {
  return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

void separate_chinese_characters(SourcedText& text) {
  for_each_character(text, [](char32_t c, Span span, Rewrite& rewrite) {
    const bool separated = is_chinese_character(c);
    if (separated) rewrite.put(" ", span.begin);
    rewrite.keep(span);
    if (separated) rewrite.put(" ", span.begin);
  });
}

StepResult read_bert(const Json& part) {
  ASSIGN_OR_RETURN(const bool clean_text, json_bool(part, "clean_text"));
  ASSIGN_OR_RETURN(const bool chinese, json_bool(part, "handle_chinese_chars"));
  ASSIGN_OR_RETURN(const bool lower, json_bool(part, "lowercase"));
  ASSIGN_OR_RETURN(const bool accents, json_bool_or(part, "strip_accents", lower));
  return NormalizerStep([=](SourcedText& text) -> Status {
    if (clean_text) clean(text, is_other, is_white_space);
    if (chinese) separate_chinese_characters(text);
    if (accents) {
      apply_form(text, NormalForm::kNfd);
      drop_if(text, is_mark_nonspacing);
    }
    if (lower) lowercase(text);
    return Ok{};
  });
}

StepResult read_precompiled(const Json&) {
  return Error{.what = "precompiled character maps are not supported",
               .expected = "a normalizer made of named parts",
               .actual = "a SentencePiece character map",
               .fix = "Use a BPE tokenizer; these maps belong to Unigram models."};
}

constexpr PipelinePart<NormalizerStep> kParts[] = {
    {"NFC", read_form<NormalForm::kNfc>},
    {"NFD", read_form<NormalForm::kNfd>},
    {"NFKC", read_form<NormalForm::kNfkc>},
    {"NFKD", read_form<NormalForm::kNfkd>},
    {"Lowercase", read_lowercase},
    {"Strip", read_strip},
    {"StripAccents", read_strip_accents},
    {"Replace", read_replace},
    {"Prepend", read_prepend},
    {"ByteLevel", read_byte_level},
    {"Nmt", read_nmt},
    {"BertNormalizer", read_bert},
    {"Precompiled", read_precompiled},
};

}  // namespace

Result<Normalizer> Normalizer::make(const Json& json) {
  std::vector<NormalizerStep> steps;
  RETURN_IF_ERROR(read_steps(json, "normalizer", "normalizers",
                             std::span<const PipelinePart<NormalizerStep>>(kParts), steps));
  return Normalizer(std::move(steps));
}

Status Normalizer::normalize(SourcedText& text) const {
  for (const NormalizerStep& step : steps_) {
    RETURN_IF_ERROR(step(text));
    RETURN_IF_ERROR(text.check_budget());
  }
  return Ok{};
}

}  // namespace espalier::text
