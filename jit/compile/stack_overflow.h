// Notices when a thread runs into the end of its stack.
#pragma once

#include <cstdint>

namespace kernwright {

/// Called inside the signal's handler, on a stack of its own: it must neither allocate nor lock.
/// `instruction` is where the thread was. When it returns, the fault takes its usual way.
using OnOverflow = void (*)(std::uintptr_t instruction);

/// Watches the stack of the calling thread, for as long as that lives. The handler of SIGSEGV that
/// was there gets all other faults. One that another part of the program installs later gets them
/// all, until the next thread is watched. `on_overflow` is the same for all threads.
void watch_stack(OnOverflow on_overflow);

}  // namespace kernwright
