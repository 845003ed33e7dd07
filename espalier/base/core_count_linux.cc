// Affinity: sched_setaffinity(2). Quotas: cpu.max of control groups v2, cpu.cfs_quota_us of v1
// (Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst of Linux).
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "espalier/base/threads.h"

namespace espalier {
namespace {

constexpr int kMaxProcessors = 1 << 16;

// Numbers of the processors that this thread may run on; empty where the kernel does not say.
std::vector<int> allowed_processors() {
  // The kernel refuses a set that is smaller than its own, whatever is in it.
  for (int capacity = CPU_SETSIZE; capacity <= kMaxProcessors; capacity *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<size_t>(capacity)), [](cpu_set_t* memory) { CPU_FREE(memory); });
    if (set == nullptr) return {};
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    CPU_ZERO_S(bytes, set.get());
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> processors;
    for (int cpu = 0; cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) processors.push_back(cpu);
    }
    return processors;
  }
  return {};
}

// The first number in a file; `fallback` where there is none.
int64_t number_in(const std::string& path, int64_t fallback) {
  std::ifstream file(path);
  int64_t value = 0;
  return file >> value ? value : fallback;
}

// Whole CPUs of a quota; INT_MAX where there is no limit.
int whole_cpus(int64_t quota_us, int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return INT_MAX;
  return static_cast<int>(std::clamp<int64_t>(quota_us / period_us, 1, INT_MAX));
}

int limit_of_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  int64_t quota_us = 0, period_us = 0;
  return file >> quota_us >> period_us ? whole_cpus(quota_us, period_us) : INT_MAX;  // or "max"
}

int limit_of_v1(const std::string& directory) {
  return whole_cpus(number_in(directory + "/cpu.cfs_quota_us", -1),
                    number_in(directory + "/cpu.cfs_period_us", -1));
}

// The tightest limit of a group and of those above it. In a container the path may be that of the
// host, which is not there; the files at the mount are its own.
int limit_along(const std::string& mount, std::string group, int (*limit_of)(const std::string&)) {
  int limit = limit_of(mount);
  while (group.size() > 1) {
    limit = std::min(limit, limit_of(mount + group));
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
  return limit;
}

bool names_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

// Lines of /proc/self/cgroup: "0::/group" (v2), "4:cpu,cpuacct:/group" (v1).
int cgroup_limit(const std::string& root) {
  const std::string mount = root + "/sys/fs/cgroup";
  int limit = INT_MAX;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) limit = std::min(limit, limit_along(mount, group, limit_of_v2));
    if (!names_cpu(controllers)) continue;
    for (const std::string& name : {std::string("cpu"), controllers}) {
      limit = std::min(limit, limit_along(mount + "/" + name, group, limit_of_v1));
    }
  }
  return limit;
}

}  // namespace

int physical_core_count(const std::string& root) {
  const std::vector<int> processors = allowed_processors();
  std::set<std::pair<int64_t, int64_t>> cores;  // (package, core)
  for (const int cpu : processors) {
    const std::string topology =
        root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const int64_t core = number_in(topology + "core_id", -1);
    if (core >= 0) cores.emplace(number_in(topology + "physical_package_id", -1), core);
  }
  const size_t count = cores.empty() ? processors.size() : cores.size();
  return std::clamp(static_cast<int>(count), 1, cgroup_limit(root));
}

}  // namespace espalier
