// A worker's abilities: the table of its tasks.
#pragma once

#include "base/byte_reader.h"
#include "worker/channel.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace kernwright {

/// Runs in the worker: reads its request, returns its result, or throws. Files left by it are
/// closed behind it; it may put others there for the caller.
using TaskFunction = std::vector<std::byte> (*)(ByteReader& request,
                                                std::vector<FileHandle>& files);

/// Name -> function.
using TaskTable = std::map<std::string, TaskFunction>;

/// The tasks of every worker: "ping" (returns what it gets), "nvrtc", "compile" and "lint".
const TaskTable& worker_tasks();

}  // namespace kernwright
