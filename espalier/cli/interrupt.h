// Ctrl-C while it exists ends the session's answer instead of the process. One at a time.
#pragma once

#include <csignal>

#include "espalier/engine/session.h"

namespace espalier::cli {

class InterruptGuard {
 public:
  explicit InterruptGuard(engine::Session* session);  // null: reading is interrupted, nothing else
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction previous_;
};

}  // namespace espalier::cli
