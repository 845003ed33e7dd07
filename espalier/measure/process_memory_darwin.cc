// Written after <mach/task_info.h>; has not run on a Mac yet.
#include <mach/mach.h>

#include "espalier/measure/process_memory.h"

namespace espalier::measure {

ProcessMemory process_memory() {
  task_vm_info_data_t info{};
  mach_msg_type_number_t count = TASK_VM_INFO_COUNT;
  if (task_info(mach_task_self(), TASK_VM_INFO, reinterpret_cast<task_info_t>(&info), &count) !=
      KERN_SUCCESS) {
    return {};
  }
  return {.peak_rss_bytes = static_cast<int64_t>(info.resident_size_peak),
          .anonymous_bytes = static_cast<int64_t>(info.internal),
          .file_bytes = static_cast<int64_t>(info.external)};
}

}  // namespace espalier::measure
