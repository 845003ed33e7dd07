// CostProfile: what calls of the model took, by rows, kept for the next process, so that
// --speculate auto begins with measurements of this machine. One file for each model, machine and
// choice of engine flags, beside the packed weights; nothing but time is lost without it.
#pragma once

#include <string>

#include "espalier/cli/loading.h"
#include "espalier/cli/options.h"
#include "espalier/engine/session.h"

namespace espalier::cli {

class CostProfile {
 public:
  CostProfile(const LoadedModel& model, const Options& options);

  // Gives the session what is known; a file that is damaged is as good as none.
  void load(engine::Session& session) const;
  // Keeps what the session has learned. A file that cannot be written is none.
  void save(const engine::Session& session) const;

 private:
  std::string path_;  // "": packed weights are not kept, so this is not either
};

}  // namespace espalier::cli
