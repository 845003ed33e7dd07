// EmulatedTiles: the matrix-tile unit of linear_tiles.h in plain loops, so that its kernels are
// tested on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "espalier/base/check.h"

namespace espalier::units::cpu {
namespace {

struct EmulatedTiles {
  struct State {
    int rows = 0, k_bytes = 0;
    int32_t sums[4][16][16];
    int8_t activations[2][16][64];
    uint8_t weights[2][16][64];
  };
  static State& state() {
    thread_local State state;
    return state;
  }

  static void configure(int rows, int k_bytes) {
    CHECK(rows > 0 && rows <= 16 && k_bytes > 0 && k_bytes <= 64 && k_bytes % 4 == 0);
    state() = {.rows = rows, .k_bytes = k_bytes, .sums = {}, .activations = {}, .weights = {}};
  }
  static void release() { state().rows = 0; }

  template <int kTile>
  static void zero() {
    static_assert(kTile < 4);
    std::memset(state().sums[kTile], 0, sizeof(state().sums[kTile]));
  }
  template <int kTile>
  static void load(const std::byte* rows, int64_t stride) {
    static_assert(kTile >= 4 && kTile < 8);
    State& s = state();
    CHECK_GT(s.rows, 0);
    const bool weights = kTile > 5;
    const int count = weights ? s.k_bytes / 4 : s.rows, bytes = weights ? 64 : s.k_bytes;
    for (int row = 0; row < count; ++row) {
      void* to = weights ? static_cast<void*>(s.weights[kTile % 2][row])
                         : static_cast<void*>(s.activations[kTile % 2][row]);
      std::memcpy(to, rows + row * stride, static_cast<size_t>(bytes));
    }
  }
  template <int kTile>
  static void load_streaming(const std::byte* rows, int64_t stride) {
    load<kTile>(rows, stride);
  }
  template <int kTile>
  static void store(int32_t* sums) {
    std::memcpy(sums, state().sums[kTile],
                static_cast<size_t>(state().rows) * sizeof(state().sums[kTile][0]));
  }
  // sums[row][output] += sum over k of activations[row][k] * weights[k / 4][output][k % 4]
  template <int kSums, int kActivations, int kWeights>
  static void dot() {
    State& s = state();
    for (int row = 0; row < s.rows; ++row) {
      for (int k = 0; k < s.k_bytes; ++k) {
        const int8_t a = s.activations[kActivations % 2][row][k];
        const uint8_t* weights = &s.weights[kWeights % 2][k / 4][k % 4];
        for (int output = 0; output < 16; ++output) {
          s.sums[kSums][row][output] += int32_t{a} * weights[4 * output];
        }
      }
    }
  }
};

}  // namespace
}  // namespace espalier::units::cpu
