// The worker's side of its channel.
#pragma once

#include "worker/tasks.h"

namespace kernwright {

/// Does the tasks that come over the socket `channel`, one after the other, until the other end is
/// closed. When that happens in the middle of one, the process ends there (exit code 0, no
/// destructor runs): nobody is left who wants its result. Returns the exit code. Descriptors above
/// the standard ones and `channel` are closed first. For a process of its own.
int serve_worker(int channel, const TaskTable& tasks);

}  // namespace kernwright
