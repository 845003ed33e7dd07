#include "espalier/units/cpu/cpu_unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "espalier/base/threads.h"
#include "espalier/units/cpu/executable.h"
#include "espalier/units/cpu/kernels.h"

namespace espalier::units::cpu {
namespace {

FloatMode float_mode(WeightMode mode) {
  switch (mode) {
    case WeightMode::kInt8:
      return FloatMode::kInt8Channel;
    case WeightMode::kInt8Group64:
      return FloatMode::kInt8Groups;
    case WeightMode::kKeep:
      break;
  }
  return FloatMode::kKeep;
}

Result<const KernelSet*> choose_kernels(const std::string& wanted,
                                        const std::vector<std::string>& present) {
  for (const KernelSet* set : all_kernel_sets()) {
    if (set->supported() && (wanted.empty() || set->name == wanted)) return set;
  }
  return Error{.what = "no such kernel set on this machine",
               .expected = fmt::format("one of {}", fmt::join(present, ", ")),
               .actual = fmt::format("'{}'", wanted),
               .fix = "Leave the choice out to get the first of them."};
}

}  // namespace

std::vector<std::string> CpuUnit::kernel_names() const {
  std::vector<std::string> names;
  for (const KernelSet* set : all_kernel_sets()) {
    if (set->supported()) names.emplace_back(set->name);
  }
  return names;
}

Result<std::shared_ptr<ThreadPool>> CpuUnit::threads(int count) {
  if (auto pool = pool_.lock(); pool != nullptr && pool->thread_count() == count) return pool;
  ASSIGN_OR_RETURN(std::shared_ptr<ThreadPool> pool, ThreadPool::create(count));
  pool_ = pool;
  return pool;
}

Result<std::unique_ptr<Executable>> CpuUnit::compile(program::ProgramSet programs,
                                                     const Weights& weights,
                                                     const std::string& embedding_tensor,
                                                     const CompileOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Error{.what = "that number of threads cannot be used",
                 .expected = fmt::format("0 (one for each core) to {}", kMaxThreads),
                 .actual = std::to_string(options.threads),
                 .fix = "Leave it out to use one for each core."};
  }
  if (options.activation_planes != 1 && options.activation_planes != 2) {
    return Error{.what = "that precision of activations does not exist",
                 .expected = "1 plane (8 bits) or 2 planes (16 bits)",
                 .actual = std::to_string(options.activation_planes),
                 .fix = "Use 2 unless speed matters more than agreement."};
  }
  if (options.kv_bits != 16 && options.kv_bits != 8) {
    return Error{.what = "that precision of the KV cache does not exist",
                 .expected = "16 or 8 bits",
                 .actual = std::to_string(options.kv_bits),
                 .fix = "Use 16 unless memory or long contexts matter more than agreement."};
  }
  ASSIGN_OR_RETURN(const KernelSet* kernels, choose_kernels(options.kernels, kernel_names()));
  const int thread_count = options.threads == 0 ? physical_core_count() : options.threads;
  ASSIGN_OR_RETURN(std::shared_ptr<ThreadPool> pool, threads(thread_count));
  return CpuExecutable::compile(programs, weights, embedding_tensor, std::move(pool),
                                {.kernels = kernels,
                                 .threads = thread_count,
                                 .planes = options.activation_planes,
                                 .kv_bits = options.kv_bits,
                                 .floats = float_mode(options.weights),
                                 .packed_cache = options.packed_cache});
}

}  // namespace espalier::units::cpu
