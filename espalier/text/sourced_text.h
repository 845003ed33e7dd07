// SourcedText: a text on its way through normalizer and pre-tokenizer. Where it is tracked, every
// byte knows the offset in the input of the character that it came from, which two rules ask for:
// Metaspace with prepend_scheme "first" (does this piece begin the input?) and the guard against
// control tokens in user text. Plain data; Rewrite builds the next version of a text and pays for
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/base/result.h"

namespace espalier::text {

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

// What the parts of a tokenizer may write for one text, all of them together: a file can have parts
// that each make a text ten times as long. Real ones need a few times the text.
class RewriteBudget {
 public:
  static constexpr uint64_t kTimesTheText = 64;
  static constexpr uint64_t kAtLeastBytes = 1u << 20;

  explicit RewriteBudget(uint64_t text_bytes)
      : left_bytes_(text_bytes * kTimesTheText + kAtLeastBytes) {}

  bool spend(uint64_t bytes) {
    exceeded_ |= bytes > left_bytes_;
    if (!exceeded_) left_bytes_ -= bytes;
    return !exceeded_;
  }
  Status check() const {
    if (!exceeded_) return Ok{};
    return Error{.what = "the tokenizer makes the text too long",
                 .expected = fmt::format("parts that write at most {} times the text, and {} KiB",
                                         kTimesTheText, kAtLeastBytes >> 10),
                 .actual = "more",
                 .fix = "Look for parts that replace a text by a longer one."};
  }

 private:
  uint64_t left_bytes_;
  bool exceeded_ = false;
};

struct SourcedText {
  std::string text;
  bool tracked = false;
  std::vector<uint32_t> sources;    // one for each byte where tracked, else empty
  RewriteBudget* budget = nullptr;  // null: whatever it takes

  Status check_budget() const { return budget == nullptr ? Status(Ok{}) : budget->check(); }

  std::string_view view(Span span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
};

class Rewrite {
 public:
  explicit Rewrite(const SourcedText& from) : from_(from) {
    to_.tracked = from.tracked;
    to_.budget = from.budget;
    to_.text.reserve(from.text.size() + from.text.size() / 8);
  }

  // Bytes of the old text, unchanged.
  void keep(Span span) {
    if (!pays(span.end - span.begin)) return;
    to_.text += from_.view(span);
    if (!from_.tracked) return;
    to_.sources.insert(to_.sources.end(),
                       from_.sources.begin() + static_cast<ptrdiff_t>(span.begin),
                       from_.sources.begin() + static_cast<ptrdiff_t>(span.end));
  }
  // New bytes that come from the character at old offset `from`.
  void put(std::string_view bytes, size_t from) {
    if (!pays(bytes.size())) return;
    to_.text += bytes;
    if (!from_.tracked) return;
    const uint32_t source = from < from_.sources.size() ? from_.sources[from] : 0;
    to_.sources.insert(to_.sources.end(), bytes.size(), source);
  }
  size_t size() const { return to_.text.size(); }
  SourcedText take() { return std::move(to_); }

 private:
  // Where not, the text is cut short, and check_budget() says so.
  bool pays(size_t bytes) { return to_.budget == nullptr || to_.budget->spend(bytes); }

  const SourcedText& from_;
  SourcedText to_;
};

}  // namespace espalier::text
