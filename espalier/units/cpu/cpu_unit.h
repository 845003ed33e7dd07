// CpuUnit: the embedded default. Checks the options, chooses the kernel set and makes a
// CpuExecutable of a program set. Executables of one unit and one number of threads share these
// threads, so their calls must not overlap. One caller at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/threads.h"
#include "espalier/units/unit.h"

namespace espalier::units::cpu {

class CpuUnit final : public Unit {
 public:
  std::string_view name() const override { return "cpu"; }
  std::vector<std::string> kernel_names() const override;
  Result<std::unique_ptr<Executable>> compile(program::ProgramSet programs, const Weights& weights,
                                              const std::string& embedding_tensor,
                                              const CompileOptions& options) override;

 private:
  Result<std::shared_ptr<ThreadPool>> threads(int count);

  std::weak_ptr<ThreadPool> pool_;  // of the last executable
};

}  // namespace espalier::units::cpu
