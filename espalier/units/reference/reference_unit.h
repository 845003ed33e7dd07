// ReferenceUnit: the unit that defines what programs mean: naive loops, fp64 inside,
// fp32 between ops, fp32 KV, weights exactly as the checkpoint stores them, whatever
// CompileOptions::weights says. Every other unit is compared with it. It is not meant to be fast.
// Stateless; safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/units/unit.h"

namespace espalier::units::reference {

class ReferenceUnit final : public Unit {
 public:
  std::string_view name() const override { return "reference"; }
  std::vector<std::string> kernel_names() const override { return {"naive"}; }
  Result<std::unique_ptr<Executable>> compile(program::ProgramSet programs, const Weights& weights,
                                              const std::string& embedding_tensor,
                                              const CompileOptions& options) override;
};

}  // namespace espalier::units::reference
