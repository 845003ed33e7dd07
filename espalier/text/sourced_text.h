// SourcedText: a text on its way through normalizer and pre-tokenizer. Where it is tracked, every
// byte knows the offset in the input of the character that it came from, which two rules ask for:
// Metaspace with prepend_scheme "first" (does this piece begin the input?) and the guard against
// control tokens in user text. Plain data; Rewrite builds the next version of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier::text {

struct Span {
  size_t begin = 0;
  size_t end = 0;
};

struct SourcedText {
  std::string text;
  bool tracked = false;
  std::vector<uint32_t> sources;  // one for each byte where tracked, else empty

  std::string_view view(Span span) const {
    return std::string_view(text).substr(span.begin, span.end - span.begin);
  }
};

class Rewrite {
 public:
  explicit Rewrite(const SourcedText& from) : from_(from) {
    to_.tracked = from.tracked;
    to_.text.reserve(from.text.size() + from.text.size() / 8);
  }

  // Bytes of the old text, unchanged.
  void keep(Span span) {
    to_.text += from_.view(span);
    if (!from_.tracked) return;
    to_.sources.insert(to_.sources.end(),
                       from_.sources.begin() + static_cast<ptrdiff_t>(span.begin),
                       from_.sources.begin() + static_cast<ptrdiff_t>(span.end));
  }
  // New bytes that come from the character at old offset `from`.
  void put(std::string_view bytes, size_t from) {
    to_.text += bytes;
    if (!from_.tracked) return;
    const uint32_t source = from < from_.sources.size() ? from_.sources[from] : 0;
    to_.sources.insert(to_.sources.end(), bytes.size(), source);
  }
  size_t size() const { return to_.text.size(); }
  SourcedText take() { return std::move(to_); }

 private:
  const SourcedText& from_;
  SourcedText to_;
};

}  // namespace espalier::text
