// How the operands of a matrix product lie in memory: what PackedLinear and Activations write and
// kernels read. Plain pointers and numbers without inline functions, because kernels are built with
// ISA flags that no inline function of the rest of the program may be compiled with. Whoever hands
// a layout out owns the memory.
//
// Weights lie in panels of 16 outputs, each in the order in which every kernel consumes it. A step
// is 4 k of 16 outputs, [16 outputs][4 k]: a register of vpdpbusd, a row of a matrix tile.
//   kInt8Channel  [k/4] steps of u8 = q + 128, then 16 fp32 scales
//   kNibbles      groups of 32, 64 or 128 k: lines, of which line i holds step 2i in its low and step
//                 2i + 1 in its high nibbles, u4 = q + 8; then 16 scales, then 16 offsets where the
//                 encoding has them, with which q itself is unsigned: u4 = q
//   kBytes        groups of 16 to 128 k: steps of u8 = q + 128, or q; scales, offsets
//   kFloat*       [k][16 outputs]
// Bytes are unsigned because vpdpbusd wants them so; the zero point is undone with the sums of the
// activations.
//
// Activations lie in one record a row: the values first, and at its end scale and sum of each
// K-block, then the sums of 32 and of 16. How the values lie is the affair of the kernel set that
// writes and reads them: fp32, int16, or int8 planes at the start of each half of the record, so
// that the planes of all rows are rows of one matrix of stride `plane_bytes`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::units::cpu {

inline constexpr int64_t kPanelOutputs = 16;
inline constexpr int64_t kStepElements = 4;  // k of one vpdpbusd lane
inline constexpr int64_t kColumnAlignment =
    64;  // K is padded to it with zeros: whole lines, whole tiles

inline constexpr int64_t kTileRows = 16;  // of activations, the height of a matrix tile

// A K-block: 512 * 127 * 32639 < 2^31, so the integer dot product of a block fits int32 and is
// rounded to fp32 by one conversion. Longer blocks would need 64-bit sums and hold fewer scales for
// outliers.
inline constexpr int64_t kBlockElements = 512;

enum class WeightForm : uint8_t {
  kInt8Channel,
  kNibbles,
  kBytes,
  kFloat32,
  kFloat16,
  kBFloat16,
};

// How the scales and offsets of groups lie: as the file has them, or fp32.
enum class ScaleForm : uint8_t { kFloat32, kFloat16, kBFloat16 };

struct LinearLayout {
  const std::byte* panels;  // [panel_count][panel_bytes]
  int64_t panel_bytes;
  int64_t rows;            // outputs
  int64_t columns;         // K
  int64_t padded_columns;  // int8 per channel: K rounded up to kColumnAlignment; groups: K
  WeightForm form;
  int64_t group_elements;  // of groups only, as the rest: k of a group
  bool has_offsets;
  ScaleForm scales;  // and offsets
};

struct ActivationLayout {
  std::byte* records;  // [max_rows][record_bytes]; a record starts with the values
  int64_t record_bytes;
  int64_t plane_bytes;  // half a record: from one int8 plane of a row to the other
  int64_t columns;
  int64_t padded_columns;  // K rounded up to kColumnAlignment
  int64_t scales_at;       // offsets in the record: fp32 [blocks]
  int64_t block_sums_at;   // int32 [blocks]
  int64_t sums32_at;       // int32 [padded_columns / 32]
  int64_t sums16_at;       // int32 [padded_columns / 16]
  int planes;              // 2: 16-bit values, 1: 8-bit, 0: fp32 for float weights
};

}  // namespace espalier::units::cpu
