// Times a kernel, and perhaps a baseline beside it, in series of launches.
#pragma once

#include "tune/judge/case_check.h"
#include "tune/judge/judged_kernel.h"
#include "tune/judge/verdict.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace kernwright {

/// Median and interval of these numbers.
JudgeTiming summary_of(std::vector<double> samples, int case_number, bool is_counted);

struct SeriesTimes {
  std::vector<double> kernel, baseline;  ///< milliseconds
};

/// On a GPU. The cases are of one size; each series launches some of them in random order, behind a
/// launch of the small one, which has the module loaded. Every result is compared by `check`:
/// throws Ruling. `gpu_use` is held but for these comparisons. With a baseline, which is not
/// compared, the series of both alternate.
SeriesTimes time_on_gpu(JudgedKernel& kernel, JudgedKernel* baseline, const CaseRef& small,
                        const std::vector<CaseRef>& cases, const ContentsPlan& plan,
                        CaseCheck& check, std::uint64_t seed, std::unique_lock<std::mutex>& gpu_use,
                        WaitLimits limits);

}  // namespace kernwright
