// Series with random order and number of launches.
#include "tune/judge/series_timing.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <span>
#include <utility>

#include "tune/judge/baseline.h"
#include "tune/random.h"

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

/// All cases but up to one, in an order given by the seed.
std::vector<CaseRef> draw_cases(std::vector<CaseRef> order, std::uint64_t seed) {
  Random random(seed);
  random.shuffle(std::span(order));
  if (order.size() > 2 && random.below(2) == 0) order.pop_back();
  return order;
}

/// Whether each outcome is right. Cases are compared at the same time, as an array of a megabyte
/// takes a millisecond.
std::vector<char> right_ones(const CaseCheck& check, const std::vector<CaseRef>& cases,
                             const std::vector<LaunchOutcome>& outcomes) {
  std::vector<std::future<bool>> asked;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    asked.push_back(
        std::async(std::launch::async, [&, i] { return check.accepts(*cases[i], outcomes[i]); }));
  }
  std::vector<char> right;
  for (std::future<bool>& each : asked) right.push_back(each.get() ? 1 : 0);
  return right;
}

/// Lets others use the GPU. The time of that does not count for this judgement.
class GivenAway {
 public:
  GivenAway(std::unique_lock<std::mutex>& gpu_use, WaitLimits& limits)
      : gpu_use_(gpu_use), limits_(limits) {
    gpu_use_.unlock();
  }
  ~GivenAway() {
    gpu_use_.lock();
    if (limits_.deadline) *limits_.deadline += Clock::now() - begin_;
  }
  GivenAway(const GivenAway&) = delete;
  GivenAway& operator=(const GivenAway&) = delete;

 private:
  std::unique_lock<std::mutex>& gpu_use_;
  WaitLimits& limits_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

JudgeTiming summarize_timing(std::vector<double> samples, int case_number, bool is_counted) {
  JudgeTiming timing;
  timing.is_counted = is_counted;
  if (is_counted) timing.unit = "instructions + transactions";
  timing.median = median(samples);
  timing.interval = median_interval(samples);
  timing.samples = std::move(samples);
  timing.case_number = case_number;
  return timing;
}

TimedKernel::TimedKernel(RemoteDevice& gpu, const Task& task, const JudgedText& text,
                         ContentsPlan& its_plan, Verdict& verdict, WaitLimits its_limits)
    : kernel(gpu, *text.cubin, text.signature),
      check(kernel, task, its_plan, verdict, {}, its_limits),
      plan(its_plan),
      limits(std::move(its_limits)),
      waits_since(Clock::now()) {}

void time_on_gpu(TimedKernel& kernel, TimedKernel* baseline, const CaseRef& small,
                 const std::vector<CaseRef>& cases, std::uint64_t seed,
                 std::unique_lock<std::mutex>& gpu_use) {
  std::vector<LaunchOutcome> outcomes;  // of one series; the next one uses their memory again
  const auto run = [&](TimedKernel& which, std::uint64_t series_seed) {
    if (which.limits.deadline) *which.limits.deadline += Clock::now() - which.waits_since;
    std::vector<CaseRef> order = draw_cases(cases, series_seed);
    order.insert(order.begin(), small);
    const std::vector<double> taken =
        which.kernel.time(order, which.plan, series_seed, outcomes, which.limits);
    which.times.insert(which.times.end(), taken.begin(), taken.end());
    std::vector<char> right;
    {
      const GivenAway meanwhile(gpu_use, which.limits);
      right = right_ones(which.check, order, outcomes);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (right[i] != 0) continue;
      which.check.compare_outcome(*order[i], outcomes[i], derived_seed(series_seed, 7 + i),
                                  which.limits);
    }
    which.waits_since = Clock::now();
  };
  for (int round = 0; round < kRounds; ++round) {
    const auto number = static_cast<std::uint64_t>(round);
    run(kernel, derived_seed(seed, 2 * number));
    if (baseline == nullptr) continue;
    baseline_step([&] { run(*baseline, derived_seed(seed, 2 * number + 1)); });
  }
}

}  // namespace kernwright
