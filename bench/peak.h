// PeakLoop: how many products a core can do with the instruction of a kernel set, on registers that
// hold random numbers (constants let some processors run faster than any model does). The other
// floor beside reading memory. A loop keeps no state; any thread.
//
// The loops are built with ISA flags: nothing inline from outside may be instantiated in their files
// (espalier/units/cpu/linear_layout.h says why).
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/clock.h"
#include "espalier/base/threads.h"

namespace espalier::bench {

struct PeakLoop {
  std::string_view kernels;  // name of the kernel set
  bool integers;             // of integer weights; else of weights that are kept as floats
  std::string_view instruction;
  int planes_at_once;  // planes of activations that one product covers: 2 where they are 16 bits
  int64_t pass_products;
  void (*run)(int64_t passes);
};

// Null where the set has no instruction of its own (the portable one).
const PeakLoop* peak_loop(std::string_view kernels, bool integers);

// Products per second of all threads of the pool together, over about ten milliseconds.
double products_per_s(ThreadPool& pool, const PeakLoop& loop, MillisecondClock clock = now_ms);

// What the loops of the instruction sets are made of.
inline constexpr int64_t kVnniPassProducts = int64_t{24} * 64;
inline constexpr int64_t kZmmFloatPassProducts = int64_t{24} * 16;
inline constexpr int64_t kYmmPairPassProducts = int64_t{8} * 16;
inline constexpr int64_t kYmmDotPassProducts = int64_t{12} * 32;
inline constexpr int64_t kYmmFloatPassProducts = int64_t{12} * 8;
inline constexpr int64_t kTilePassProducts = int64_t{4} * 16 * 16 * 64;
void run_vnni(int64_t passes);           // vpdpbusd zmm
void run_zmm_floats(int64_t passes);     // vfmadd231ps zmm
void run_ymm_pairs(int64_t passes);      // vpmaddwd and vpaddd ymm
void run_ymm_vex_dots(int64_t passes);   // vpdpbusd ymm, of AVX-VNNI
void run_ymm_evex_dots(int64_t passes);  // vpdpbusd ymm, of AVX-512
void run_ymm_floats(int64_t passes);     // vfmadd231ps ymm
void run_tiles(int64_t passes);          // tdpbsud

}  // namespace espalier::bench
