// Regex: patterns of tokenizer.json (Oniguruma's dialect, as the `tokenizers` library compiles
// them) on PCRE2. The translation is in text/regex_dialect.h. Matching is bounded in backtracking
// steps and memory, so a hostile pattern ends in an error. Immutable; find_all() may be called from
// any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/text/sourced_text.h"

namespace espalier::text {

// A text divided into matches and what lies between them.
struct Match {
  Span span;
  bool is_match = false;
};

class Regex {
 public:
  static Result<Regex> compile(std::string_view oniguruma_pattern);
  static Result<Regex> literal(std::string_view text);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Cuts `text` (valid UTF-8) into matches and gaps, in order and without holes; an empty text is
  // one gap. Empty matches happen, except directly after a match. `matches` is overwritten.
  Status find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<const Impl> impl);
  static Result<Regex> build(std::string_view source, std::string_view pcre2_pattern,
                             unsigned options);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace espalier::text
