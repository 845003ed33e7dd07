// SmeTiles: the matrix-tile unit of linear_tiles.h on SME with registers of 512 bits (Apple M4), whose tiles of 32-bit sums
// are as large as those of AMX.
//
// In the streaming mode that tiles need, ordinary vector instructions do not exist, and entering or leaving it clears all
// registers. So dots are only noted, and a store computes what its tile waits for in one stay, which is one asm statement:
// the compiler can put nothing into it. Activations lie row by row and sumopa takes 4 k of 16 rows: another tile turns them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::units::cpu {
namespace {

struct SmeTiles {
  static void configure(int rows, int k_bytes) {
    state().rows = rows;
    state().steps = k_bytes / 4;
  }
  static void release() {}

  template <int kTile>
  static void zero() {
    state().waiting[kTile] = 0;
  }
  template <int kTile>
  static void load(const std::byte* rows, int64_t stride) {
    state().sources[kTile - 4] = {rows, stride};
  }
  template <int kTile>
  static void load_streaming(const std::byte* rows, int64_t stride) {
    load<kTile>(rows, stride);
  }
  template <int kSums, int kActivations, int kWeights>
  static void dot() {
    State& s = state();
    const Source& a = s.sources[kActivations - 4];
    s.products[kSums][s.waiting[kSums]++] = {a.rows, a.stride, s.sources[kWeights - 4].rows};
  }
  template <int kTile>
  static void store(int32_t* sums) {
    const State& s = state();
    multiply(s.products[kTile], s.waiting[kTile], s.rows, s.steps, sums);
  }

 private:
  struct Source {
    const std::byte* rows;
    int64_t stride;
  };
  struct Product {
    const std::byte* activations;  // [rows][k]
    int64_t stride;
    const std::byte* weights;  // [k / 4][16 outputs][4 k]
  };
  struct State {
    int64_t rows, steps;
    Source sources[4];       // tiles 4 to 7
    Product products[4][8];  // of the tiles of sums: a K-block, 64 k a product
    int64_t waiting[4];
  };
  static State& state() {
    thread_local State state;
    return state;
  }

  // sums[rows][16] = the sum of `count` products, at least one, of `steps` times 4 k. za0 holds the sums, za3 the rows of
  // activations, of which it gives columns; rows that are not there are 0.
  [[gnu::noinline]] static void multiply(const Product* products, int64_t count, int64_t rows,
                                         int64_t steps, int32_t* sums) {
    asm volatile(
        ".arch armv8.2-a+sme\n\t"
        "smstart\n\t"
        "ptrue p0.b\n\t"
        "whilelt p1.s, xzr, %[steps]\n\t"
        "zero {za}\n"
        "1:\n\t"
        "ldp x9, x10, [%[products]]\n\t"
        "ldr x11, [%[products], #16]\n\t"
        "add %[products], %[products], #24\n\t"
        "mov w12, #0\n"
        "2:\n\t"
        "ld1w {za3h.s[w12, 0]}, p1/z, [x9]\n\t"
        "add x9, x9, x10\n\t"
        "add w12, w12, #1\n\t"
        "cmp w12, %w[rows]\n\t"
        "b.lt 2b\n\t"
        "mov w12, #0\n"
        "3:\n\t"
        "mov z0.s, p0/m, za3v.s[w12, 0]\n\t"
        "ld1b {z1.b}, p0/z, [x11]\n\t"
        "sumopa za0.s, p0/m, p0/m, z0.b, z1.b\n\t"
        "add x11, x11, #64\n\t"
        "add w12, w12, #1\n\t"
        "cmp w12, %w[steps]\n\t"
        "b.lt 3b\n\t"
        "subs %[count], %[count], #1\n\t"
        "b.ne 1b\n\t"
        "mov w12, #0\n"
        "4:\n\t"
        "st1w {za0h.s[w12, 0]}, p0, [%[sums]]\n\t"
        "add %[sums], %[sums], #64\n\t"
        "add w12, w12, #1\n\t"
        "cmp w12, %w[rows]\n\t"
        "b.lt 4b\n\t"
        "smstop"
        : [products] "+r"(products), [count] "+r"(count), [sums] "+r"(sums)
        : [rows] "r"(rows), [steps] "r"(steps)
        : "memory", "cc", "x9", "x10", "x11", "x12", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
          "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20",
          "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
  }
};

}  // namespace
}  // namespace espalier::units::cpu
