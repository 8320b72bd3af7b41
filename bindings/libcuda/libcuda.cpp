// The exported functions: each jumps to what the simulated device has in the slot of its name.
#include "libcuda/contexts.h"
#include "sim/device.h"

// A slot for each function, filled when the library is loaded, and the function: a jump through it,
// which leaves every argument where it is.
#if defined(__x86_64__)
#define KW_JUMP(symbol) "  jmp *kw_slot_" symbol "(%rip)\n"
#elif defined(__aarch64__)
#define KW_JUMP(symbol)         \
  "  adrp x16, kw_slot_" symbol \
  "\n"                          \
  "  ldr x16, [x16, :lo12:kw_slot_" symbol "]\n  br x16\n"
#else
#error "libcuda is written for x86-64 and AArch64"
#endif
#define KW_EXPORT(symbol)                                                           \
  asm(".pushsection .text\n.globl " symbol "\n.type " symbol ", %function\n" symbol \
      ":\n" KW_JUMP(symbol) ".size " symbol ", . - " symbol "\n.popsection\n")

#define KW_DRIVER(name, symbol, since, need, parameters)           \
  extern "C" [[gnu::visibility("hidden")]] void* kw_slot_##symbol; \
  void* kw_slot_##symbol = nullptr;                                \
  KW_EXPORT(#symbol);
#define KW_DRIVER_EXTENSION(name, parameters)
#include "driver/driver_api.def"

namespace {

[[gnu::constructor]] void fill_slots() {
  kernwright::sim::set_report_log(true);  // such a program sees codes alone
  kernwright::DriverApi api = kernwright::sim::driver_api();
  api.cuGetProcAddress = kernwright::libcuda::get_proc_address;
#define KW_DRIVER(name, symbol, since, need, parameters) \
  kw_slot_##symbol = reinterpret_cast<void*>(api.name);
#define KW_DRIVER_EXTENSION(name, parameters)
#include "driver/driver_api.def"
}

}  // namespace
