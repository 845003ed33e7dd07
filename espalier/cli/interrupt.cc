#include "espalier/cli/interrupt.h"

#include <atomic>

namespace espalier::cli {
namespace {

std::atomic<engine::Session*> interrupted_session{nullptr};
static_assert(std::atomic<engine::Session*>::is_always_lock_free);  // read by a signal handler

void on_interrupt(int) {
  if (engine::Session* session = interrupted_session.load()) session->cancel();
}

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

}  // namespace espalier::cli
