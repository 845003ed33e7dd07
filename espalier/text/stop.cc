#include "espalier/text/stop.h"

#include <algorithm>
#include <utility>

namespace espalier::text {
namespace {

// Size of the longest suffix of `text` that is a proper prefix of `stop`.
size_t held_size(std::string_view text, std::string_view stop) {
  for (size_t size = std::min(text.size(), stop.size() - 1); size > 0; --size) {
    if (text.ends_with(stop.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

StopMatcher::Step StopMatcher::push(std::string_view text) {
  if (stopped_) return {.text = "", .stopped = true};
  held_ += text;
  size_t first_end = std::string::npos;
  size_t begin = std::string::npos;  // of the longest stop that ends there
  size_t held = 0;
  for (const std::string& stop : stops_) {
    held = std::max(held, held_size(held_, stop));
    const size_t found = held_.find(stop);
    if (found == std::string::npos) continue;
    const size_t end = found + stop.size();
    if (end < first_end || (end == first_end && found < begin)) {
      first_end = end;
      begin = found;
    }
  }
  stopped_ = begin != std::string::npos;
  const size_t certain = stopped_ ? begin : held_.size() - held;
  Step step{.text = held_.substr(0, certain), .stopped = stopped_};
  held_.erase(0, stopped_ ? held_.size() : certain);
  return step;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace espalier::text
