// Times a kernel, and perhaps a baseline beside it, in series of launches.
#pragma once

#include "tune/judge/case_check.h"
#include "tune/judge/judged_kernel.h"
#include "tune/judge/judged_text.h"
#include "tune/judge/verdict.h"

#include <chrono>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kernwright {

/// Median and interval of these numbers.
JudgeTiming summarize_timing(std::vector<double> samples, int case_number, bool is_counted);

/// A kernel on a GPU with timed series.
struct TimedKernel {
  /// Arguments by reference must outlive the object. `limits` hold for the series of this kernel;
  /// time of others in between does not count.
  TimedKernel(RemoteDevice& gpu, const Task& task, const JudgedText& text, ContentsPlan& its_plan,
              Verdict& verdict, WaitLimits its_limits);

  JudgedKernel kernel;
  CaseCheck check;  ///< of its results
  const ContentsPlan& plan;
  WaitLimits limits;
  std::chrono::steady_clock::time_point waits_since;  ///< for its next series
  std::vector<double> times;                          ///< milliseconds
};

/// The cases are of one size. Each series launches some of them in random order, behind a launch of
/// the small one; this loads the module. Every result is compared: throws Ruling. With a baseline
/// the series of both alternate; errors of the baseline throw InvalidArgument. `gpu_use` is held
/// but for the comparisons.
void time_on_gpu(TimedKernel& kernel, TimedKernel* baseline, const CaseRef& small,
                 const std::vector<CaseRef>& cases, std::uint64_t seed,
                 std::unique_lock<std::mutex>& gpu_use);

}  // namespace kernwright
