// The judge: compiles, checks, compares and times kernels from untrusted texts.
#pragma once

#include "jit/source/source.h"
#include "sim/line_profile.h"
#include "tune/judge/task.h"
#include "tune/judge/verdict.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// One text to be judged.
struct Submission {
  Source source;
  /// A text for comparing the kernel's time with. It is compiled, checked and compared the same
  /// way.
  std::optional<Source> baseline{};
  /// Checks of the simulated device, as in KERNWRIGHT_CHECKS: memory, init, race, sync, all.
  std::vector<std::string> checks{"all"};
  /// For each of: compiling, checking, timing.
  std::chrono::milliseconds timeout{10000};
  std::uint64_t seed = 0;
};

struct JudgeOptions {
  unsigned workers = 1;  ///< judgements at a time
  /// "auto": a GPU where there is one; or as KERNWRIGHT_DEVICE says: "sim", "cuda:1".
  std::string device{};
};

/// Judges in worker processes: one with a simulated device for each judgement at a time, and one
/// with the GPU. They are kept. A mistake of a kernel costs only its process, and the next
/// judgement gets another one. Thread-safe.
///
/// A judgement has these steps. The text is compiled, and the text and its PTX are searched for
/// forbidden parts. All cases run on the simulated device with its checks, in one module, then
/// further launches of several sizes, in several orders of warps and blocks. The same launches run
/// on the GPU, if there is one, with bands around every buffer. Before each launch, write-only
/// arrays get contents of another kind. Then come series of timed launches. Each launch has a new
/// module and fresh inputs, copied to the device right before it, and every result is compared.
/// Expected values are never in the worker's process or on a device.
class Judge {
 public:
  /// Throws InvalidArgument for no workers.
  explicit Judge(JudgeOptions options = {});
  /// Ends the processes; no judgement may be running.
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// Waits for a free worker. Every mistake of the text is in the verdict. Throws:
  /// - InvalidArgument for a task that cannot judge: see Task::check() and draw_case(); for a
  ///   signature that does not compile; for a rejected baseline (it is checked only after the
  ///   kernel has passed, but always compiled);
  /// - any exception of the task's functions;
  /// - OutOfMemory for inputs larger than the device, NvrtcNotFound, Interrupted.
  Verdict judge(const Submission& submission, const Task& task);

  /// The cost of each line of a case's launch on the simulated device. Throws as judge();
  /// InvalidArgument if the verdict of judge() would be "compile" or "cheating"; Timeout,
  /// WorkerLost, LaunchConfigError if it would be "timeout" or "crash".
  sim::LineProfile profile(const Submission& submission, const Task& task, int number);

  unsigned workers() const noexcept;
  /// Worker processes lost by kernels, in finished judgements.
  int losses() const;

 private:
  struct State;
  class Lane;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
