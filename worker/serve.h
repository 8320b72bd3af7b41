// The worker's side of its channel.
#pragma once

#include "worker/tasks.h"

#include <cstddef>

namespace kernwright {

/// Stack of each task. Compilers descend with the nesting of a text: the usual 8 MiB are full after
/// some 1000 brackets. Only what is used takes memory.
inline constexpr std::size_t kTaskStack = std::size_t{64} << 20;

/// Exit code of a worker whose task ran out of stack.
inline constexpr int kOverflowExitCode = 119;

/// Does the tasks from the socket `channel`, one after the other, on a thread of their own. Once
/// the other end is closed the process ends, be it in the middle of a task (exit code 0, no
/// destructor runs): its result has no receiver. Throws Error when it cannot begin.
/// Descriptors above the standard ones and `channel` are closed first. For a process of its own.
[[noreturn]] void serve_worker(int channel, const TaskTable& tasks);

}  // namespace kernwright
