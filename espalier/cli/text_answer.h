// TextAnswer: the tokens of an answer as text: streamed in whole UTF-8 sequences, ended by stop
// strings, printed as it comes or only kept. One per answer; refers to its tokenizer.
#pragma once

#include <string>
#include <vector>

#include "espalier/engine/session.h"
#include "espalier/text/detokenizer.h"
#include "espalier/text/stop.h"
#include "espalier/text/tokenizer.h"

namespace espalier::cli {

class TextAnswer {
 public:
  TextAnswer(const text::Tokenizer& tokenizer, std::vector<std::string> stops, bool prints);
  // Whether to go on: no stop string was found and somebody still reads.
  bool push(TokenId token);
  void finish();  // what was held back
  const std::string& text() const { return text_; }

 private:
  bool emit(const std::string& text);

  text::Detokenizer detokenizer_;
  text::StopMatcher stop_matcher_;
  bool prints_;
  bool stopped_ = false;
  std::string text_;
};

// On stderr, what kept the answer from being as long as was asked for: the context, or memory.
void note_limits(const engine::Answer& answer);

}  // namespace espalier::cli
