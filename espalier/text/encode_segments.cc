#include <algorithm>

#include "espalier/text/chat_template.h"
#include "espalier/text/tokenizer.h"

namespace espalier::text {

Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                             const std::vector<Segment>& segments) {
  std::string text;
  std::vector<Span> user_text;
  for (const Segment& segment : segments) {
    const Span span{text.size(), text.size() + segment.text.size()};
    text += segment.text;
    if (!segment.from_user || span.begin == span.end) continue;
    if (!user_text.empty() && user_text.back().end == span.begin) {
      user_text.back().end = span.end;  // neighbours are one text: no gap for a control token
    } else {
      user_text.push_back(span);
    }
  }
  return tokenizer.encode_mixed(text, user_text,
                                {.add_special_tokens = false, .parse_special = true});
}

}  // namespace espalier::text
