// Random numbers for the registers of the peak loops. Internal linkage: the files that include this
// are built with ISA flags.
#pragma once

#include <cstdint>

namespace espalier::bench {
namespace {

// The constants of Knuth's MMIX; the high bits are random enough for a multiplier's wires.
[[gnu::always_inline]] inline void fill_random(uint8_t* bytes, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = static_cast<uint8_t>(seed >> 56);
  }
}

// Small and finite, so that no sum grows beyond what is usual.
[[gnu::always_inline]] inline void fill_random_floats(float* values, int64_t count, uint64_t seed) {
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    values[i] = (static_cast<float>(seed >> 40) - 8388608.0F) * 0x1p-40F;
  }
}

}  // namespace
}  // namespace espalier::bench
