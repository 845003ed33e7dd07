// The folder of packed files: which file is that of a model, when one is written, and which are
// removed. Any number of processes may share it: files appear whole under their names, a file that
// is mapped lives on where its name is gone, and what a killed process left is removed by a later
// one.
//
// Nothing here fails a load but what would fail packing too: where the folder is of no use, the
// weights are packed into memory and a note says why.
#pragma once

#include <string>

#include "espalier/base/result.h"
#include "espalier/base/threads.h"
#include "espalier/units/cpu/packed_file.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

struct PackedWeights {
  PackedPayload payload;
  PackedReport report;
};

Result<PackedWeights> obtain_packed_weights(const PackedContent& content, const PackedCache& cache,
                                            ThreadPool& pool);

// The file of a key in a folder: its name follows from the key alone.
std::string packed_file_path(const std::string& folder, const std::string& key);

}  // namespace espalier::units::cpu
