// Read from the system.
#include "worker/machine_memory.h"

#include <unistd.h>

#include <algorithm>

#include "base/regular_file.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kLeastMemory = std::uint64_t{1} << 30;

}  // namespace

std::uint64_t memory_of_machine() {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  for (const char* file : {"/sys/fs/cgroup/memory.max",                       // of a control group
                           "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {  // of an older one
    std::uint64_t limit = 0;
    if (read_numbers(file, {&limit, 1}) == 1 && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

std::uint64_t memory_of_worker() { return std::max(kLeastMemory, memory_of_machine() / 2); }

}  // namespace kernwright
