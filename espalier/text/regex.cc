#define PCRE2_CODE_UNIT_WIDTH 8
#include "espalier/text/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <optional>

#include "espalier/base/utf8.h"
#include "espalier/text/regex_dialect.h"
#include "espalier/text/unicode.h"

namespace espalier::text {
namespace {

// PCRE2's own default for one match, and what one interpreted match may use of the heap.
constexpr uint32_t kMatchLimit = 10'000'000;
constexpr uint32_t kHeapLimitKibibytes = 64 << 10;
constexpr size_t kPatternLimitBytes = 1 << 20;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Deleter<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Deleter<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Deleter<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Deleter<pcre2_match_data_free>>;

PCRE2_SPTR bytes_of(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string error_text(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

std::string shortened(std::string_view pattern) {
  return pattern.size() <= 120 ? std::string(pattern)
                               : replace_invalid_utf8(pattern.substr(0, 117)) + "...";
}

// The text with every character replaced by its stand-in, of the same length; nothing where none
// differs.
std::optional<std::string> with_stand_ins(std::string_view text) {
  std::optional<std::string> out;
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const Character c = character_at(text, i);
    const char32_t stand_in = regex_stand_in(c.code_point);
    if (stand_in != c.code_point) {
      if (!out) out = std::string(text);
      std::string bytes;
      append_utf8(bytes, stand_in);
      out->replace(i, c.size, bytes);
    }
    i += c.size;
  }
  return out;
}

}  // namespace

struct Regex::Impl {
  std::string source;
  Code code;
  MatchContext context;
  bool uses_stand_ins = true;
};

Regex::Regex(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Result<Regex> Regex::compile(std::string_view oniguruma_pattern) {
  ASSIGN_OR_RETURN(const std::string pattern, pcre2_from_oniguruma(oniguruma_pattern));
  return build(oniguruma_pattern, pattern, PCRE2_UCP);
}

Result<Regex> Regex::literal(std::string_view text) { return build(text, text, PCRE2_LITERAL); }

Result<Regex> Regex::build(std::string_view source, std::string_view pcre2_pattern,
                           unsigned options) {
  if (source.size() > kPatternLimitBytes) {
    return Error{.what = "a pattern of the tokenizer is too long",
                 .expected = fmt::format("at most {} bytes", kPatternLimitBytes),
                 .actual = fmt::format("{}", source.size()),
                 .fix = "The tokenizer is damaged or hostile."};
  }
  const CompileContext compile_context(pcre2_compile_context_create(nullptr));
  CHECK(compile_context != nullptr);
  pcre2_set_newline(compile_context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  auto impl = std::make_unique<Impl>();
  impl->source = std::string(source);
  impl->code.reset(pcre2_compile(bytes_of(pcre2_pattern), pcre2_pattern.size(), options | PCRE2_UTF,
                                 &error, &error_offset, compile_context.get()));
  if (impl->code == nullptr) {
    return Error{
        .what = fmt::format("a pattern of the tokenizer does not compile: {}", shortened(source)),
        .expected = "a regular expression that PCRE2 can run",
        .actual = fmt::format("{} at byte {}", error_text(error), error_offset),
        .fix = "Use a tokenizer whose pattern needs no Oniguruma extension."};
  }
  pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE);  // without it matching is only slower
  impl->context.reset(pcre2_match_context_create(nullptr));
  CHECK(impl->context != nullptr);
  pcre2_set_match_limit(impl->context.get(), kMatchLimit);
  pcre2_set_heap_limit(impl->context.get(), kHeapLimitKibibytes);
  // A pattern that itself names a character that has a stand-in must see the character.
  impl->uses_stand_ins = (options & PCRE2_LITERAL) == 0 && !with_stand_ins(source).has_value();
  return Regex(std::move(impl));
}

Status Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  matches.clear();
  const std::optional<std::string> stand_ins =
      impl_->uses_stand_ins ? with_stand_ins(text) : std::nullopt;
  const std::string_view subject = stand_ins ? std::string_view(*stand_ins) : text;
  const MatchData data(pcre2_match_data_create(1, nullptr));
  CHECK(data != nullptr);

  size_t position = 0;             // where the next search begins
  size_t covered = 0;              // end of the last entry of `matches`
  std::optional<size_t> last_end;  // of the last match
  while (position <= subject.size() && !subject.empty()) {
    const auto search = [&](uint32_t options) {
      return pcre2_match(impl_->code.get(), bytes_of(subject), subject.size(), position,
                         options | PCRE2_NO_UTF_CHECK, data.get(), impl_->context.get());
    };
    int found = search(0);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = search(PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      return Error{.what = fmt::format("a pattern of the tokenizer gave up on the text: {}",
                                       shortened(impl_->source)),
                   .expected = fmt::format("a match within {} steps", kMatchLimit),
                   .actual = error_text(found),
                   .fix = "Use a tokenizer whose pattern backtracks less, or a shorter text."};
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data.get());
    const Span match{ends[0], std::max(ends[0], ends[1])};
    if (match.begin == match.end &&
        last_end == match.end) {  // empty, right after a match: step over
      position += match.end < subject.size() ? character_at(subject, match.end).size : 1;
      continue;
    }
    if (covered < match.begin) matches.push_back({{covered, match.begin}, false});
    matches.push_back({match, true});
    position = covered = match.end;
    last_end = match.end;
  }
  if (covered < text.size() || text.empty()) matches.push_back({{covered, text.size()}, false});
  return Ok{};
}

}  // namespace espalier::text
