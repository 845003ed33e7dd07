#include "espalier/base/checksum.h"

#include <bit>
#include <cstring>

namespace espalier {
namespace {

// The primes of the specification.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                   kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                   kPrime5 = 0x27D4EB2F165667C5;
constexpr size_t kStripeBytes = 32;  // four lanes of 8

template <typename T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

uint64_t mixed(uint64_t lane, uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

uint64_t merged(uint64_t hash, uint64_t lane) {
  return (hash ^ mixed(0, lane)) * kPrime1 + kPrime4;
}

// Whole stripes from `at` on; `at` ends behind them.
uint64_t hash_stripes(const std::byte*& at, const std::byte* end) {
  uint64_t a = kPrime1 + kPrime2, b = kPrime2, c = 0, d = 0 - kPrime1;
  for (; static_cast<size_t>(end - at) >= kStripeBytes; at += kStripeBytes) {
    a = mixed(a, load<uint64_t>(at));
    b = mixed(b, load<uint64_t>(at + 8));
    c = mixed(c, load<uint64_t>(at + 16));
    d = mixed(d, load<uint64_t>(at + 24));
  }
  const uint64_t hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
  return merged(merged(merged(merged(hash, a), b), c), d);
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* end = at + bytes.size();
  uint64_t hash = bytes.size() >= kStripeBytes ? hash_stripes(at, end) : kPrime5;
  hash += bytes.size();
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ mixed(0, load<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  }
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at != end; ++at) {
    hash = std::rotl(hash ^ std::to_integer<uint64_t>(*at) * kPrime5, 11) * kPrime1;
  }
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace espalier
