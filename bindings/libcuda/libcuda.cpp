// libcuda.so.1: every exported function jumps to where the simulated device's code has it.
#include "libcuda/entry.h"

#include <dlfcn.h>
#include <unistd.h>
#include <cstddef>
#include <cstdio>
#include <cstring>

// For each name a function. It leaves its arguments where they are and jumps through its slot. The
// function's number is in a register that calls need not keep.
#if defined(__x86_64__)
#define KW_JUMP "  movl $kw_number, %eax\n  jmp *kw_slots+8*kw_number(%rip)\n"
#define KW_REFUSE "  movl %eax, %edi\n  jmp kw_refused\n"
#elif defined(__aarch64__)
#define KW_JUMP                        \
  "  mov w17, #kw_number\n"            \
  "  adrp x16, kw_slots+8*kw_number\n" \
  "  ldr x16, [x16, :lo12:kw_slots+8*kw_number]\n  br x16\n"
#define KW_REFUSE "  mov w0, w17\n  b kw_refused\n"
#else
#error "libcuda is written for x86-64 and AArch64"
#endif

// clang-format off
asm(".pushsection .text\n"
    ".set kw_number, 0\n"
#define KW_SYMBOL(symbol)                                        \
    ".globl " #symbol "\n.type " #symbol ", %function\n"         \
    #symbol ":\n" KW_JUMP ".size " #symbol ", . - " #symbol "\n" \
    ".set kw_number, kw_number + 1\n"
#include "libcuda/symbols.def"
    ".type kw_refuse, %function\nkw_refuse:\n" KW_REFUSE
    ".popsection\n");
// clang-format on

extern "C" {

[[gnu::visibility("hidden")]] extern void* kw_slots[];
[[gnu::visibility("hidden")]] void kw_refuse();
[[gnu::visibility("hidden"), gnu::used]] int kw_refused(unsigned number);

}  // extern "C"

namespace {

constexpr const char* kNames[] = {
#define KW_SYMBOL(symbol) #symbol,
#include "libcuda/symbols.def"
};
constexpr std::size_t kCount = sizeof kNames / sizeof kNames[0];

constexpr int kNotLoaded = 303;  // CUDA_ERROR_SHARED_OBJECT_INIT_FAILED

struct Entry {
  decltype(&kw_libcuda_find) find = nullptr;
  decltype(&kw_libcuda_refuse) refuse = nullptr;
};
Entry g_entry;

#ifdef KERNWRIGHT_EXTENSION
/// To stderr: the library's log is in the part that could not be loaded.
void say(const char* what, const char* why) {
  char line[1024];
  const int bytes = std::snprintf(line, sizeof line, "kernwright: error: libcuda.so.1: %s%s\n",
                                  what, why != nullptr ? why : "");
  if (bytes > 0 && write(STDERR_FILENO, line, std::strlen(line)) < 0) return;
}

/// The simulated device's code is in the Python extension, one folder up. It is opened lazily: a
/// program without Python lacks the functions for Python's calls.
Entry find_entry() {
  Entry entry;
  Dl_info self{};
  char path[4096];
  if (dladdr(reinterpret_cast<void*>(&find_entry), &self) == 0) return entry;
  const char* const slash = std::strrchr(self.dli_fname, '/');
  const int folder = slash == nullptr ? 1 : static_cast<int>(slash - self.dli_fname);
  const int bytes = std::snprintf(path, sizeof path, "%.*s/../" KERNWRIGHT_EXTENSION, folder,
                                  slash == nullptr ? "." : self.dli_fname);
  if (bytes < 0 || bytes >= static_cast<int>(sizeof path)) return entry;
  void* const extension = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (extension == nullptr) {
    say("kernwright's extension cannot be loaded: ", dlerror());
    return entry;
  }
  *reinterpret_cast<void**>(&entry.find) = dlsym(extension, "kw_libcuda_find");
  *reinterpret_cast<void**>(&entry.refuse) = dlsym(extension, "kw_libcuda_refuse");
  if (entry.find == nullptr || entry.refuse == nullptr) {
    say("kernwright's extension is of another version: install kernwright anew", nullptr);
    return {};
  }
  return entry;
}
#else
Entry find_entry() { return {kw_libcuda_find, kw_libcuda_refuse}; }
#endif

[[gnu::constructor]] void fill_slots() {
  g_entry = find_entry();
  for (std::size_t i = 0; i < kCount; ++i) {
    void* const function = g_entry.find != nullptr ? g_entry.find(kNames[i]) : nullptr;
    kw_slots[i] = function != nullptr ? function : reinterpret_cast<void*>(&kw_refuse);
  }
}

}  // namespace

extern "C" {

void* kw_slots[kCount];

int kw_refused(unsigned number) {
  return g_entry.refuse != nullptr ? g_entry.refuse(kNames[number]) : kNotLoaded;
}

/// Tells kernwright itself that this is no driver of a GPU.
KW_ENTRY extern const int kw_is_simulated;
const int kw_is_simulated = 1;

}  // extern "C"
