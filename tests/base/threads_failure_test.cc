// Threads that cannot be started: an error, and nothing left behind. Its own binary: it replaces
// operator new.
#include <gtest/gtest.h>

#include <atomic>

#include "espalier/base/threads.h"
#include "tests/support/failing_allocations.h"

namespace espalier {
namespace {

TEST(ThreadPool, AThreadThatCannotStartIsAnErrorAndThoseThatStartedAreJoined) {
  int failures = 0;
  for (int64_t count = 0;; ++count) {
    const FailOneAllocation failing(count);
    const auto pool = ThreadPool::create(6);
    if (pool.ok()) break;
    ASSERT_TRUE(failing.has_failed());
    EXPECT_EQ(pool.error().what, "a thread could not be started");
    ++failures;
  }
  EXPECT_GE(failures, 6);  // the pool itself, its list, and five threads
  std::atomic<int> calls{0};
  ThreadPool::create(6).value()->run([&](int) { ++calls; });
  EXPECT_EQ(calls, 6);
}

}  // namespace
}  // namespace espalier
