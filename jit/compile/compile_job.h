// Work with NVRTC that a thread can stop waiting for.
#pragma once

#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "jit/compile/compile_wait.h"
#include "jit/compile/nvrtc_unit.h"

#include <any>
#include <functional>
#include <string>
#include <utility>

namespace kernwright {

/// NVRTC ran out of stack, 64 MiB where there is room: the text nests too deep for it. Its thread
/// was stopped there, and that copy of NVRTC given up.
class CompilerOverflow : public Error {
 public:
  using Error::Error;
};

/// What a worker runs. It may run on past the end of the call that asked for it, and a second time
/// beside the first, so it owns what it uses.
using CompileWork = std::function<std::any(const LoadedNvrtc&, const CompileDeadline&)>;

/// Runs `work` on a worker of the pool, with an NVRTC that nobody blocks, and waits for it within
/// `limits`. NVRTC asks now and then whether to stop (12.8 and newer, and not while it instantiates
/// templates). When it has not stopped 30 ms after it should, this throws and the worker goes on:
/// - One that uses 200 ms of processor time more without asking blocks its copy of NVRTC, whose
///   front end it keeps to itself. Who waits there begins anew with another copy.
/// - One that uses 5 s more is stopped for good where it is. Its copy is given up, and the memory
///   that it holds with it.
/// `what` names the source in messages. Throws Timeout, Cancelled, Interrupted, CompilerOverflow,
/// Error when no NVRTC is left to use, what `work` throws. Thread-safe.
std::any run_compile_job(const LoadedNvrtc& nvrtc, const std::string& what,
                         const WaitLimits& limits, const CompileWork& work);

/// Jobs of this process that still run although nobody waits for them.
int abandoned_compile_jobs() noexcept;

/// Those of this process that were stopped for good.
int stopped_compile_jobs() noexcept;

}  // namespace kernwright
