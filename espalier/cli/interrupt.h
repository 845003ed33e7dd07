// Signals that end an answer or a file instead of the process. One of each kind at a time.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

#include "espalier/engine/session.h"

namespace espalier::cli {

// Ctrl-C while it exists ends the session's answer.
class InterruptGuard {
 public:
  explicit InterruptGuard(engine::Session* session);  // null: reading is interrupted, nothing else
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction previous_;
};

// Ctrl-C, SIGTERM and SIGHUP while it exists are noted, for work that must clean up after itself.
class StopGuard {
 public:
  StopGuard();
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  const std::atomic<bool>& stopped() const;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> previous_;
};

}  // namespace espalier::cli
