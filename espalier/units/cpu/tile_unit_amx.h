// AmxTiles: the matrix-tile unit of linear_tiles.h as AMX-INT8 has it. Assembly, because the
// intrinsics of g++ 12 tell the compiler nothing about the memory they read and write.
// The tile state belongs to the thread; it is released after each product, so that a thread that
// waits has none to be saved.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::units::cpu {
namespace {

struct AmxTiles {
  // What ldtilecfg reads (Intel SDM, volume 1, chapter 18).
  struct alignas(64) Shapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };

  static void configure(int rows, int k_bytes) {
    Shapes shapes;
    for (int tile = 0; tile < 8; ++tile) {
      const bool activations = tile == 4 || tile == 5, weights = tile > 5;
      shapes.row_bytes[tile] = static_cast<uint16_t>(activations ? k_bytes : 64);
      shapes.rows[tile] = static_cast<uint8_t>(weights ? k_bytes / 4 : rows);
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes) : "memory");
  }
  static void release() { asm volatile("tilerelease" ::: "memory"); }

  template <int kTile>
  [[gnu::always_inline]] static inline void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] static inline void load(const std::byte* rows, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile));
  }
  // The hint keeps what other tiles need in the first cache.
  template <int kTile>
  [[gnu::always_inline]] static inline void load_streaming(const std::byte* rows, int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile));
  }
  template <int kTile>
  [[gnu::always_inline]] static inline void store(int32_t* sums) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(sums), "r"(int64_t{64}), "i"(kTile)
                 : "memory");
  }
  template <int kSums, int kActivations, int kWeights>
  [[gnu::always_inline]] static inline void dot() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kActivations),
                 "i"(kWeights));
  }
};

}  // namespace
}  // namespace espalier::units::cpu
