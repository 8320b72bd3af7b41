// A compile as a task: its request, and what a worker does with it.
#pragma once

#include "jit/compile/compiler.h"
#include "worker/tasks.h"
#include "worker/worker.h"

#include <string>
#include <vector>

namespace kernwright {

/// Compiles in the worker with the NVRTC of this file. The result and the exceptions are those of
/// Compiler::compile(), and those of Worker::run(). The worker touches no cache.
ObjectCode compile_in(Worker& worker, const std::string& nvrtc_path, const CompileRequest& request,
                      const WaitLimits& limits = {});

/// The worker's side.
std::vector<std::byte> run_compile_task(ByteReader& request, std::vector<FileHandle>& files);

}  // namespace kernwright
