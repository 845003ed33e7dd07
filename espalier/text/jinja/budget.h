// Budget: what one rendering may cost. Everything that takes time or memory pays first, in bytes
// touched, so a hostile template ends in an Error after about a second and a bounded number of
// bytes, whatever it combines. One per rendering, one thread.
#pragma once

#include <cstdint>

#include "espalier/base/result.h"

namespace espalier::text::jinja {

class Budget {
 public:
  // 512 MiB touched in all, of which at most 64 MiB in one value. A long chat needs a few MB.
  static constexpr uint64_t kTotalBytes = uint64_t{512} << 20;
  static constexpr uint64_t kValueBytes = uint64_t{64} << 20;
  static constexpr uint64_t kStepBytes = 256;  // one node evaluated, or one object made
  static constexpr int kValueDepth = 200;      // containers within containers
  static constexpr int kCallDepth = 400;  // statements, expressions and calls within each other

  Status spend(uint64_t bytes) {
    if (bytes > kValueBytes || bytes > left_) return exhausted();
    left_ -= bytes;
    return Ok{};
  }
  // For count * unit_bytes without overflow.
  Status spend(uint64_t count, uint64_t unit_bytes) {
    if (unit_bytes != 0 && count > kValueBytes / unit_bytes) return exhausted();
    return spend(count * unit_bytes);
  }

  // For a value that grows piece by piece, each of which pays for itself.
  Status check_size(uint64_t value_bytes) const {
    if (value_bytes > kValueBytes) return exhausted();
    return Ok{};
  }

 private:
  static Error exhausted() {
    return Error{.what = "the template does too much work",
                 .expected = "at most 512 MiB of text and values touched, 64 MiB in one value",
                 .actual = "more",
                 .fix = "Look for a loop or a repetition that grows without limit."};
  }
  uint64_t left_ = kTotalBytes;
};

}  // namespace espalier::text::jinja
