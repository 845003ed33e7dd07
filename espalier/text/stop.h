// StopMatcher: finds stop strings in streamed text, across token borders. Text that could still
// become the beginning of a stop string is held back; the stop string itself is never emitted. Of
// several stops the one that ends first counts, and of those that end together the longest: so the
// result does not depend on how the text is cut into pushes. One per stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espalier::text {

class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);  // empty strings are ignored
  struct Step {
    std::string text;      // safe to emit
    bool stopped = false;  // a stop string was found; everything after it is dropped
  };
  Step push(std::string_view text);
  std::string finish();  // what was held back, when the stream ends without a stop

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace espalier::text
