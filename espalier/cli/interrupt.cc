#include "espalier/cli/interrupt.h"

namespace espalier::cli {
namespace {

std::atomic<engine::Session*> interrupted_session{nullptr};
static_assert(std::atomic<engine::Session*>::is_always_lock_free);  // read by a signal handler

void on_interrupt(int) {
  if (engine::Session* session = interrupted_session.load()) session->cancel();
}

std::atomic<bool> stop_noted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_stop(int) { stop_noted = true; }

}  // namespace

InterruptGuard::InterruptGuard(engine::Session* session) {
  interrupted_session = session;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a read returns
  sigaction(SIGINT, &action, &previous_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_, nullptr);
  interrupted_session = nullptr;
}

StopGuard::StopGuard() : previous_() {
  stop_noted = false;
  struct sigaction action = {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;  // a write goes on; the work looks at stopped() between two
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &previous_[i]);
    const bool ignored = previous_[i].sa_handler == SIG_IGN;  // nohup, a job in the background
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

StopGuard::~StopGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous_[i], nullptr);
}

const std::atomic<bool>& StopGuard::stopped() const { return stop_noted; }

}  // namespace espalier::cli
