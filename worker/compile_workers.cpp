// Leases a worker for each compile, and makes typed errors of what happens to it.
#include "worker/compile_workers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/byte_text.h"
#include "base/env.h"
#include "base/format.h"
#include "base/log.h"
#include "base/per_process.h"
#include "driver/nvtx.h"
#include "worker/machine_memory.h"

namespace kernwright {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kMemoryOfWorker = 512 * kMebibyte;  ///< more than most compiles take
constexpr std::uint64_t kMostWorkers = 64;

[[noreturn]] void blame(const Source& source, const std::string& message) {
  const Diagnostic diagnostic{Severity::error, message, source.name, 0, 0, {}, {}};
  throw CompileError(message, {diagnostic}, message, source.text, {});
}

}  // namespace

CompileWorkerLimits CompileWorkerLimits::of_machine() {
  const std::uint64_t memory = memory_of_machine();
  const std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const std::uint64_t fitting = std::max(std::uint64_t{1}, memory / kMemoryOfWorker);
  return {static_cast<unsigned>(std::min({threads, fitting, kMostWorkers})),
          std::min(memory_of_worker(), env_number(Env::compile_memory))};
}

CompileWorkers::CompileWorkers(CompileWorkerLimits limits, WorkerOptions options)
    : limits_(limits), pool_(limits.workers, [&] {
        options.memory_limit = limits.memory;
        return std::move(options);
      }()) {}

void CompileWorkers::say_why_not(const std::exception& error) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_said_why_not_, true)) return;
  }
  log(LogLevel::warning,
      "kernels are compiled in this process: a timeout or Ctrl-C may take effect late, and a crash "
      "of NVRTC ends the program: {}",
      error.what());
}

bool CompileWorkers::greet(Worker& worker, const WaitLimits& limits) {
  if (worker.has_answered()) return true;
  try {
    worker.run({"ping", "starting a worker", {}}, limits);
    return true;
  } catch (const ProcessNotStarted& error) {
    say_why_not(error);
  } catch (const WorkerLost& error) {
    say_why_not(error);
  }
  return false;
}

template <typename Result>
Result CompileWorkers::run(const Source& source, const WaitLimits& limits,
                           const std::function<Result(Worker&)>& task,
                           const std::function<Result()>& instead) {
  const NvtxRange range("compile");
  for (int attempt = 0;; ++attempt) {
    const auto worker = pool_.lease(limits);
    if (!greet(*worker, limits)) return instead();
    try {
      Result result = task(*worker);
      // What large compiles leave behind must not count for later ones.
      if (limits_.memory != 0 && worker->resident_bytes() > limits_.memory / 2) worker->kill();
      return result;
    } catch (const WorkerOverflow&) {
      blame(source,
            format("{} nests too deep for NVRTC, which ran out of stack: use fewer brackets, "
                   "branches or operators inside each other",
                   source.name));
    } catch (const WorkerOutgrown&) {
      blame(source, format("compiling {} took more than {} of memory: the text is too large for "
                           "one kernel, its templates recurse without end, or it needs a larger {}",
                           source.name, describe_bytes(limits_.memory),
                           env_variable(Env::compile_memory).name));
    } catch (const WorkerLost& error) {
      // Somebody may have killed it: another one may come through.
      if (attempt > 0) blame(source, format("{} ends its compiler: {}", source.name, error.what()));
      log(LogLevel::debug, "{}: once more", error.what());
    }
  }
}

CompileService::Facts CompileWorkers::nvrtc() {
  if (auto known = nvrtc_if_known()) return known;
  const WaitLimits limits = current_wait_limits();
  const auto worker = pool_.lease(limits);
  if (!greet(*worker, limits)) return direct_.nvrtc();
  auto found = std::make_shared<const NvrtcFacts>(
      nvrtc_of(*worker, NvrtcSearch::from_environment(), limits));
  if (make_stamp(*found) != found->stamp) {
    // It was opened before its files were replaced.
    worker->kill();
    found = std::make_shared<const NvrtcFacts>(
        nvrtc_of(*worker, NvrtcSearch::from_environment(), limits));
  }
  const std::lock_guard lock(mutex_);
  if (!nvrtc_ || nvrtc_->stamp != found->stamp) nvrtc_ = std::move(found);
  return nvrtc_;
}

CompileService::Facts CompileWorkers::nvrtc_if_known() {
  const std::lock_guard lock(mutex_);
  if (nvrtc_ && make_stamp(*nvrtc_) != nvrtc_->stamp) nvrtc_.reset();
  return nvrtc_;
}

void CompileWorkers::prepare() {
  const auto worker = pool_.lease();
  if (worker->has_answered()) return;
  try {
    prepare_nvrtc(*worker, NvrtcSearch::from_environment());
  } catch (const ProcessNotStarted& error) {
    say_why_not(error);
  }
}

CompileResult CompileWorkers::compile(const CompileJob& job, const NvrtcFacts& expected) {
  validate(job.request);
  const auto begin = std::chrono::steady_clock::now();
  const WaitLimits limits = current_wait_limits().within(job.request.options.timeout);
  const CompilerPlaces places = CompilerPlaces::of_process();
  const auto task = [&](Worker& worker) {
    try {
      return compile_in(worker, places, expected.stamp, job, limits);
    } catch (const NvrtcChanged&) {
      worker.kill();  // it may have the older one; a new one has what there is now
      return compile_in(worker, places, expected.stamp, job, limits);
    }
  };
  CompileResult result = run<CompileResult>(job.request.source, limits, task,
                                            [&] { return direct_.compile(job, expected); });
  result.code.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::vector<Diagnostic> CompileWorkers::lint(const Source& source, const ProgramOptions& options) {
  using Found = std::vector<Diagnostic>;
  validate(source);
  validate(options);
  const WaitLimits limits = current_wait_limits().within(options.timeout);
  const CompilerPlaces places = CompilerPlaces::of_process();
  try {
    return run<Found>(
        source, limits,
        [&](Worker& worker) { return lint_in(worker, places, source, options, limits); },
        [&] { return direct_.lint(source, options); });
  } catch (const CompileError& error) {
    return error.diagnostics;
  }
}

void use_compile_workers() {
  set_compile_service([]() -> CompileService& { return per_process<CompileWorkers>(); });
}

}  // namespace kernwright
