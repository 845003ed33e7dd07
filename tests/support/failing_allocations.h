// Replaces operator new for a test binary of its own: allocations can be made to fail. Include it
// in one source file of the binary.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace espalier {

inline std::atomic<int64_t> allocations_until_failure{std::numeric_limits<int64_t>::max()};
inline std::atomic<size_t> smallest_counted_bytes{0};
inline std::atomic<size_t> smallest_failing_bytes{std::numeric_limits<size_t>::max()};

// While it lives, the allocation after `count` others fails, on whatever thread; later ones
// succeed.
class FailOneAllocation {
 public:
  // Those of less than `least_bytes` do not count and do not fail.
  explicit FailOneAllocation(int64_t count, size_t least_bytes = 0) {
    smallest_counted_bytes = least_bytes;
    allocations_until_failure = count;
  }
  ~FailOneAllocation() { allocations_until_failure = std::numeric_limits<int64_t>::max(); }
  FailOneAllocation(const FailOneAllocation&) = delete;
  FailOneAllocation& operator=(const FailOneAllocation&) = delete;
  bool has_failed() const { return allocations_until_failure < 0; }
};

// While it lives, every allocation of at least so many bytes fails.
class FailLargeAllocations {
 public:
  explicit FailLargeAllocations(size_t bytes) { smallest_failing_bytes = bytes; }
  ~FailLargeAllocations() { smallest_failing_bytes = std::numeric_limits<size_t>::max(); }
  FailLargeAllocations(const FailLargeAllocations&) = delete;
  FailLargeAllocations& operator=(const FailLargeAllocations&) = delete;
};

inline void fail_if_asked(size_t bytes) {
  const bool counts = bytes >= smallest_counted_bytes;
  if ((counts && allocations_until_failure.fetch_sub(1) == 0) || bytes >= smallest_failing_bytes) {
    throw std::bad_alloc();
  }
}

}  // namespace espalier

// Not inlined: the compiler would see new matched with free and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  espalier::fail_if_asked(size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  espalier::fail_if_asked(size);
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), size) == 0) return memory;
  throw std::bad_alloc();
}
// The algorithms of the standard library ask in this way and make do without.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
