// Asks the dynamic loader for the segments of what it has loaded.
#include "jit/compile/library_code.h"

#include <link.h>
#include <ucontext.h>

#include <cstddef>

namespace kernwright {
namespace {

struct Search {
  std::uintptr_t address;
  CodeRange found;
};

int find_code(dl_phdr_info* object, std::size_t, void* payload) {
  auto& search = *static_cast<Search*>(payload);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    const CodeRange range{begin, begin + segment.p_memsz};
    if (!range.contains(search.address)) continue;
    search.found = range;
    return 1;
  }
  return 0;
}

}  // namespace

CodeRange code_around(const void* function) {
  Search search{reinterpret_cast<std::uintptr_t>(function), {}};
  ::dl_iterate_phdr(find_code, &search);
  return search.found;
}

std::uintptr_t interrupted_at(const void* context) noexcept {
  const auto* state = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return state->uc_mcontext.pc;
#else
  (void)state;
  return 0;
#endif
}

}  // namespace kernwright
