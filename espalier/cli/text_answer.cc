#include "espalier/cli/text_answer.h"

#include <fmt/format.h>

#include <utility>

#include "espalier/cli/terminal.h"

namespace espalier::cli {

TextAnswer::TextAnswer(const text::Tokenizer& tokenizer, std::vector<std::string> stops,
                       bool prints)
    : detokenizer_(tokenizer), stop_matcher_(std::move(stops)), prints_(prints) {}

bool TextAnswer::emit(const std::string& text) {
  text_ += text;
  return !prints_ || write_stdout(text);
}

bool TextAnswer::push(TokenId token) {
  const text::StopMatcher::Step step = stop_matcher_.push(detokenizer_.push(token));
  stopped_ = step.stopped;
  return emit(step.text) && !stopped_;
}

void TextAnswer::finish() {
  if (stopped_) return;
  const text::StopMatcher::Step step = stop_matcher_.push(detokenizer_.finish());
  emit(step.text);
  if (!step.stopped) emit(stop_matcher_.finish());
}

void note_limits(const engine::Answer& answer) {
  if (answer.clipped) {
    note(
        fmt::format("the context has room for {} tokens after the prompt; --max-tokens was clipped",
                    answer.max_tokens));
  }
  if (answer.error) complain("the answer ends here: " + answer.error->message());
}

}  // namespace espalier::cli
