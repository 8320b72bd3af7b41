// The stack of a worker's tasks, and what happens at its end.
#pragma once

#include <cstddef>

namespace kernwright {

/// Starts a thread with a stack of `bytes`, or of the usual size where there is no room. It is
/// never joined. Throws Error when no thread can be started.
void start_thread_with_stack(std::size_t bytes, void* (*function)(void*), void* argument);

/// From now on the process ends with `exit_code`, at once, when the calling thread runs into the
/// end of its stack. Other faults take their usual way. For a process of its own: takes SIGSEGV and
/// SIGBUS.
void end_process_on_overflow(int exit_code);

}  // namespace kernwright
