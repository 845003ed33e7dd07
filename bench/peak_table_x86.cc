#include <algorithm>
#include <iterator>

#include "bench/peak.h"

namespace espalier::bench {
namespace {

constexpr PeakLoop kLoops[] = {
    {"amx", true, "tdpbsud", 1, kTilePassProducts, run_tiles},
    {"amx", false, "vfmadd231ps zmm", 1, kZmmFloatPassProducts, run_zmm_floats},
    {"avx512vnni", true, "vpdpbusd zmm", 1, kVnniPassProducts, run_vnni},
    {"avx512vnni", false, "vfmadd231ps zmm", 1, kZmmFloatPassProducts, run_zmm_floats},
    {"avx512vl", true, "vpdpbusd ymm", 1, kYmmDotPassProducts, run_ymm_evex_dots},
    {"avx512vl", false, "vfmadd231ps ymm", 1, kYmmFloatPassProducts, run_ymm_floats},
    {"avxvnni", true, "vpdpbusd ymm", 1, kYmmDotPassProducts, run_ymm_vex_dots},
    {"avxvnni", false, "vfmadd231ps ymm", 1, kYmmFloatPassProducts, run_ymm_floats},
    {"avx2", true, "vpmaddwd, vpaddd ymm", 2, kYmmPairPassProducts, run_ymm_pairs},
    {"avx2", false, "vfmadd231ps ymm", 1, kYmmFloatPassProducts, run_ymm_floats},
};

}  // namespace

const PeakLoop* peak_loop(std::string_view kernels, bool integers) {
  const auto* found = std::ranges::find_if(kLoops, [&](const PeakLoop& loop) {
    return loop.kernels == kernels && loop.integers == integers;
  });
  return found == std::end(kLoops) ? nullptr : found;
}

}  // namespace espalier::bench
