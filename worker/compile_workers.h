// Compiles in processes that may be killed.
#pragma once

#include "jit/compile/compile_service.h"
#include "worker/compile_task.h"
#include "worker/worker_pool.h"

#include <memory>
#include <mutex>

namespace kernwright {

/// Limits for a process's compiles.
struct CompileWorkerLimits {
  unsigned workers = 1;
  std::uint64_t memory = 0;  ///< resident bytes of each; 0: no limit

  /// A worker for each hardware thread and 512 MiB of memory, at most 64; each may take
  /// KERNWRIGHT_COMPILE_MEMORY, but at most half of the memory (1 GiB in any case). The memory is
  /// the machine's, or the control group's.
  static CompileWorkerLimits of_machine();
};

/// Has a pool of workers compile. A deadline, a signal or a stop flag ends a compile within some 20
/// ms whatever it does, and its worker with it. A text that nests too deep for NVRTC, takes more
/// memory than the limit, or crashes NVRTC twice is a CompileError. NVRTC is not loaded into this
/// process. Where no worker can be started, compiles run in this process: see DirectCompileService;
/// the log says so once.
class CompileWorkers : public CompileService {
 public:
  explicit CompileWorkers(CompileWorkerLimits limits = CompileWorkerLimits::of_machine(),
                          WorkerOptions options = {});

  Facts nvrtc() override;
  Facts nvrtc_if_known() override;
  /// Starts a worker that opens NVRTC.
  void prepare() override;
  CompileResult compile(const CompileJob& job, const NvrtcFacts& expected) override;
  std::vector<Diagnostic> lint(const Source& source, const ProgramOptions& options) override;

 private:
  /// Whether the worker does tasks at all; says once in the log why not.
  bool greet(Worker& worker, const WaitLimits& limits);
  void say_why_not(const std::exception& error);
  /// `task` in a worker, else `instead`.
  template <typename Result>
  Result run(const Source& source, const WaitLimits& limits,
             const std::function<Result(Worker&)>& task, const std::function<Result()>& instead);

  const CompileWorkerLimits limits_;
  WorkerPool pool_;
  DirectCompileService direct_;
  std::mutex mutex_;
  Facts nvrtc_;
  bool has_said_why_not_ = false;
};

/// From now on all compiles of this process and its forked children go to CompileWorkers, which
/// start the program of worker_command().
void use_compile_workers();

}  // namespace kernwright
