#include <algorithm>
#include <thread>

#include "espalier/base/threads.h"

namespace espalier {

int physical_core_count(const std::string&) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace espalier
