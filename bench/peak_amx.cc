// The tile unit on full tiles: two of activations, two of weights, four of sums, as the kernels use it.
#include "bench/peak.h"
#include "bench/random_operands.h"
#include "espalier/units/cpu/tile_unit_amx.h"

namespace espalier::bench {

void run_tiles(int64_t passes) {
  using Tiles = units::cpu::AmxTiles;
  constexpr int64_t kTileBytes = 1024, kRowBytes = 64;
  alignas(64) uint8_t random[4 * kTileBytes];
  fill_random(random, sizeof(random), 1);
  const auto* tiles = reinterpret_cast<const std::byte*>(random);
  asm volatile("" ::: "memory");  // the stores before the tile loads, which g++ 12 may move
  Tiles::configure(16, 64);
  Tiles::load<4>(tiles, kRowBytes);
  Tiles::load<5>(tiles + kTileBytes, kRowBytes);
  Tiles::load<6>(tiles + 2 * kTileBytes, kRowBytes);
  Tiles::load<7>(tiles + 3 * kTileBytes, kRowBytes);
  Tiles::zero<0>();
  Tiles::zero<1>();
  Tiles::zero<2>();
  Tiles::zero<3>();
  for (int64_t pass = 0; pass < passes; ++pass) {
    Tiles::dot<0, 4, 6>();
    Tiles::dot<1, 4, 7>();
    Tiles::dot<2, 5, 6>();
    Tiles::dot<3, 5, 7>();
  }
  Tiles::release();
}

}  // namespace espalier::bench
