// ChatTemplate: renders chat messages with a model's own Jinja template, as transformers'
// apply_chat_template does (trim_blocks, lstrip_blocks, loop controls, tojson, strftime_now,
// raise_exception, transparent generation tags). Immutable; render() may be called from any thread.
//
// Safety of user text: what came from message content is marked while it passes through the
// template, so the result is a list of segments and only template text may be parsed for control
// tokens (docs/architecture.md, "Per request").
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/json.h"
#include "espalier/base/result.h"
#include "espalier/base/tokenizer_data.h"

namespace espalier::text {

struct Segment {
  std::string text;
  bool from_user = false;  // from messages, tools or variables; otherwise from the template
};

struct RenderOptions {
  bool add_generation_prompt = true;
  std::string bos_token = {}, eos_token = {};
  OrderedJson tools = nullptr;          // array of tool descriptions, or null
  OrderedJson variables = nullptr;      // object: enable_thinking, documents, ...; or null
  std::optional<std::time_t> now = {};  // for strftime_now; the clock where absent
};

class Tokenizer;

class ChatTemplate {
 public:
  // Parse errors name line and column.
  static Result<ChatTemplate> parse(const std::string& source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // `messages`: array of {"role", "content", ...}. Errors of raise_exception carry the template's
  // message. Ordered, because tojson prints keys in the order in which they came
  // (parse_ordered_json); a Json converts. A null member stays, as `none`: who wants it gone, as
  // apply_chat_template does with messages, drops it before. The reasoning of a message gets all
  // the names that templates know it by: reasoning_content, thinking.
  Result<std::vector<Segment>> render(const OrderedJson& messages,
                                      const RenderOptions& options) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string join(const std::vector<Segment>& segments);

// Token ids of a rendered template: control tokens are parsed in template text only;
// pre-tokenisation sees the whole text, so ids equal those of the joined text wherever user text
// holds no control token. BOS is not added by the tokenizer (templates write it themselves).
Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                             const std::vector<Segment>& segments);

}  // namespace espalier::text
