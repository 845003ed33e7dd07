// KernelSet: the kernels of one instruction set, a table of function pointers chosen once at load. The
// portable set defines the arithmetic; every other set equals it bit for bit (design §11.1-3).
//
// Row kernels work on one row; a row's result depends on nothing but that row and the weights.
// Reductions run over 16 virtual lanes in a fixed order (base/vec16.h), so lane count and ISA do not matter.
// All pointers are to fp32 unless said otherwise; no alignment is needed; input and output may be the same
// buffer where the signature has one of each. Thread-safe: kernels keep no state.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/units/cpu/linear.h"

namespace espalier::units::cpu {

// One query head of one row. Its keys are the committed positions 0..committed-1 and then `path`: the row's
// ancestors inside the window and itself, in order of position.
struct AttentionQuery {
  const float* query;   // [head_dim], rotated
  float* output;        // [head_dim]
  const int32_t* path;  // [path_length] window rows, ancestors first, the row itself last
  int64_t path_length;  // at least 1
};

inline constexpr int64_t kAttentionQueries = 6;  // of one tile: they share every load of K and V

// Queries (of any rows and heads) that read the same KV head. What a query gets does not depend on the others.
struct AttentionTile {
  std::span<const AttentionQuery> queries;  // 1..kAttentionQueries
  int64_t head_dim;
  float scale;
  const uint16_t* keys;         // committed K of this KV head, fp16; layout: attention_layout.h
  const uint16_t* values;       // committed V of this KV head
  int64_t committed;            // positions
  const uint16_t* window_keys;  // staged rows of the window; position = window row
  const uint16_t* window_values;
  float* scratch;  // attention_scratch_floats() of attention_layout.h
};

struct KernelSet {
  std::string_view name;  // "portable", "avx2", ... as in --kernels
  bool (*supported)();    // this CPU can run it

  // linear.h: rows [first_row, first_row + row_count) of x [rows, x_stride] into the planes of `out`.
  void (*quantize_rows)(const float* x, int64_t x_stride, int64_t first_row, int64_t row_count,
                        Activations& out);
  // y[r, n] for r in [0, row_count), n in the 16-output panels [first_panel, last_panel); y row stride in elements.
  void (*linear)(const PackedLinear& weights, const Activations& x, int64_t row_count,
                 int64_t first_panel, int64_t last_panel, float* y, int64_t y_stride);

  // Semantics of program/program.h; one row.
  void (*rms_norm)(const float* x, const float* weight, int64_t channels, int64_t group_channels,
                   float epsilon, float* y);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, int64_t channels,
                     float epsilon, float* y);
  // cosines, sines: [pairs] of this row's position, already multiplied by the op's scale.
  void (*rope)(const float* x, const float* cosines, const float* sines, int64_t heads,
               int64_t head_dim, int64_t pairs, bool interleaved, float* y);
  void (*gated_silu)(const float* gate, const float* up, int64_t channels, float* y);
  void (*gelu)(const float* x, int64_t channels, bool tanh_form, float* y);
  void (*add)(const float* a, const float* b, int64_t channels, float* y);
  void (*mul)(const float* a, const float* b, int64_t channels, float* y);
  // taps: [kernel] pointers to rows of z, oldest first; weight: tap k at weight + k * weight_stride (transposed at
  // load); bias may be null.
  void (*short_conv)(const float* const* taps, int64_t kernel, const float* weight,
                     int64_t weight_stride, const float* bias, int64_t channels, float* y);
  void (*attention)(const AttentionTile& tile);
  // scores become exp(score - largest); returns their sum.
  float (*exponentials)(float* scores, int64_t count);
  void (*to_half)(const float* x, int64_t count, uint16_t* y);  // saturates at +-65504
};

// Sets of this build, best first; the portable one is last and always there.
std::span<const KernelSet* const> all_kernel_sets();

// The rows of that table; a build has those of its architecture (CMakeLists.txt).
extern const KernelSet kPortableKernels;
extern const KernelSet kAvx2Kernels;
extern const KernelSet kAvxVnniKernels;
extern const KernelSet kAvx512VlKernels;
extern const KernelSet kAvx512VnniKernels;
extern const KernelSet kAmxKernels;
extern const KernelSet kNeonDotprodKernels;
extern const KernelSet kNeonI8mmKernels;
extern const KernelSet kSmeKernels;
bool cpu_has_avx2();
bool cpu_has_avxvnni();
bool cpu_has_avx512vnni();
bool cpu_has_amx();  // and the system lets this process use it
bool cpu_has_neon_dotprod();
bool cpu_has_neon_i8mm();
bool cpu_has_sme();  // with byte products, registers of 512 bits, and i8mm

}  // namespace espalier::units::cpu
