// The order of a judgement.
#include "tune/judge/referee.h"

#include <algorithm>
#include <chrono>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/floor.h"
#include "tune/judge/packing.h"
#include "tune/judge/ruling.h"
#include "tune/judge/series_timing.h"
#include "tune/measure/launch_counts.h"

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

/// Where there is a GPU too, larger cases are for it alone.
constexpr std::uint64_t kSimulatedBytes = std::uint64_t{1} << 20;
constexpr std::size_t kMostFindings = 100;  // of one launch, different ones
constexpr int kTimedCases = 3, kCountedCases = 3;
/// Launches of a small case behind those of all cases, in the same module: for kernels that are
/// right a few times only. Some more, as the seed says.
constexpr int kMoreLaunches = 8, kSomeMore = 8;

/// Adds what a step took, also when it throws.
class AddSeconds {
 public:
  explicit AddSeconds(double& to) : to_(to), begin_(Clock::now()) {}
  ~AddSeconds() { to_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  AddSeconds(const AddSeconds&) = delete;
  AddSeconds& operator=(const AddSeconds&) = delete;

 private:
  double& to_;
  Clock::time_point begin_;
};

CaseRef smallest_with_elements(const std::vector<CaseRef>& cases) {
  CaseRef found;
  for (const CaseRef& each : cases) {
    if (each->bytes() == 0 || each->shape.grid->count() == 0) continue;
    if (found == nullptr || each->bytes() < found->bytes()) found = each;
  }
  return found;
}

double cost(const CheckReport& report) { return launch_counts(report.profile.total()).cost(); }

}  // namespace

Referee::Referee(const JudgeDevices& devices, const Submission& submission, const Task& task)
    : devices_(devices), submission_(submission), task_(task) {}

WaitLimits Referee::limits() const { return WaitLimits{}.within(submission_.timeout); }

void Referee::timed_step(SecondsOf seconds, const std::function<void()>& step) {
  const AddSeconds part(verdict_.*seconds);
  step();
}

Verdict Referee::judge() {
  verdict_.seed = submission_.seed;
  timed_step(&Verdict::seconds, [this] { run(); });
  return verdict_;
}

void Referee::run() {
  try {
    timed_step(&Verdict::compile_seconds, [this] { compile(); });
    draw_cases();
    timed_step(&Verdict::check_seconds, [this] { check(); });
    timed_step(&Verdict::time_seconds, [this] { measure(); });
  } catch (const Ruling& ruling) {
    verdict_.status = ruling.status;
    verdict_.reason = ruling.reason;
  } catch (const Timeout& error) {  // while something small was asked of a device
    verdict_.status = VerdictStatus::timeout;
    verdict_.reason = error.what();
  } catch (const UnsupportedInstruction& error) {
    verdict_.status = VerdictStatus::compile;
    verdict_.reason = error.what();
  } catch (const WorkerLost& error) {
    verdict_.status = VerdictStatus::crash;
    verdict_.reason = error.what();
  }
}

void Referee::compile() {
  const DeviceFacts& simulated = devices_.simulated.facts();
  const DeviceFacts* gpu = devices_.gpu_facts;
  verdict_.device = gpu == nullptr ? simulated.name : gpu->name;
  // First, so that a task that cannot judge is not the text's fault.
  std::optional<KernelSignature> declared;
  if (!task_.signature.empty()) declared = declared_signature(task_, simulated);
  kernel_ = compile_judged(submission_.source, task_, simulated, gpu, verdict_, limits());
  if (declared) {
    const std::string difference = signature_difference(kernel_.signature, *declared);
    if (!difference.empty()) throw Ruling{VerdictStatus::compile, difference};
  }
  if (!submission_.baseline) return;
  Verdict its_verdict;
  try {
    baseline_ = compile_judged(*submission_.baseline, task_, simulated, gpu, its_verdict, limits());
  } catch (const Ruling& ruling) {
    throw InvalidArgument(format("the baseline is no kernel for the task: {}", ruling.reason));
  }
}

/// Without a signature in the task it is the text that must take the task's inputs.
void Referee::check_first_inputs() {
  const HostValues first = task_.inputs(submission_.seed, std::min(1, task_.cases - 1));
  try {
    check_values(kernel_.signature, first);
  } catch (const InvalidArgument& error) {
    if (!task_.signature.empty()) throw;
    throw Ruling{VerdictStatus::compile,
                 format("the kernel does not take the task's inputs: {}", error.what())};
  }
}

void Referee::draw_cases() {
  check_first_inputs();
  for (int number = 0; number < task_.cases; ++number) {
    cases_.push_back(draw_case(task_, submission_.seed, number));
    check_values(kernel_.signature, cases_.back()->inputs);
  }
  const auto largest =
      std::max_element(cases_.begin(), cases_.end(),
                       [](const CaseRef& a, const CaseRef& b) { return a->bytes() < b->bytes(); });
  timed_number_ = task_.timed_case.value_or((*largest)->number);
  small_ = smallest_with_elements(cases_);
  if (small_ == nullptr) {
    throw InvalidArgument("all cases of the task are empty, so there is nothing to judge");
  }
  require_same(task_, *small_);
  plan_ = first_plan(task_, *small_);
}

void Referee::check() {
  if (kernel_.ptx) check_on(devices_.simulated, *kernel_.ptx);
  if (devices_.gpu == nullptr) return;
  const std::lock_guard alone(devices_.gpu_use);
  check_on(*devices_.gpu, *kernel_.cubin);
}

void Referee::check_on(RemoteDevice& device, const ObjectCode& code) {
  const bool is_simulated = &device == &devices_.simulated;
  std::optional<CheckOptions> checks;
  if (is_simulated)
    checks.emplace(CheckOptions{.checks = submission_.checks, .limit = kMostFindings});
  JudgedKernel kernel(device, code, kernel_.signature);
  CaseCheck check(kernel, task_, plan_, verdict_, checks, limits());
  std::uint64_t launch = 0;
  try {
    for (const CaseRef& each : cases_) {
      const bool is_large = each->bytes() > kSimulatedBytes && devices_.gpu != nullptr;
      if (is_simulated && is_large) continue;
      check.run(*each, derived_seed(submission_.seed, ++launch));
    }
    if (is_simulated && small_->bytes() > kSimulatedBytes) return;
    const std::uint64_t more = kMoreLaunches + derived_seed(submission_.seed, 3) % kSomeMore;
    for (std::uint64_t i = 0; i < more; ++i) {
      const std::uint64_t seed = derived_seed(submission_.seed, 1000 + i);
      check.run_again(*draw_case(task_, seed, small_->number), seed);
    }
  } catch (const UnsupportedInstruction&) {
    if (devices_.gpu == nullptr) throw;  // else the GPU will tell
  }
}

void Referee::measure() {
  if (devices_.gpu == nullptr) {
    measure_by_counts();
  } else {
    measure_on_gpu();
  }
  if (verdict_.baseline && verdict_.timing->median > 0) {
    verdict_.speedup = verdict_.baseline->median / verdict_.timing->median;
  }
}

void Referee::compare_with_floor(double value, const char* unit) {
  if (!verdict_.floor || value >= *verdict_.floor) return;
  throw Ruling{VerdictStatus::impossible,
               format("{:.6g} {} is less than the {:.6g} that the device needs for {}", value, unit,
                      *verdict_.floor, verdict_.floor_reason)};
}

void Referee::measure_by_counts() {
  const CheckOptions memory_alone{.checks = {"memory"}};
  JudgedKernel kernel(devices_.simulated, *kernel_.ptx, kernel_.signature);
  CaseCheck check(kernel, task_, plan_, verdict_, memory_alone, limits());
  std::optional<JudgedKernel> baseline;
  std::vector<double> counts, baseline_counts;
  if (baseline_) baseline.emplace(devices_.simulated, *baseline_->ptx, baseline_->signature);
  for (int i = 0; i < kCountedCases; ++i) {
    const std::uint64_t seed = derived_seed(submission_.seed, 2000 + static_cast<std::uint64_t>(i));
    const CaseRef drawn = draw_case(task_, seed, timed_number_);
    check.run_again(*drawn, seed);
    const auto& report = check.last_report();
    if (!report) continue;  // nothing was launched
    counts.push_back(cost(*report));
    const Floor floor = count_floor(task_, *drawn, report->profile.total());
    if (floor.value > 0) {
      verdict_.floor = floor.value;
      verdict_.floor_reason = floor.reason;
    }
    compare_with_floor(counts.back(), "instructions + transactions");
    if (!baseline) continue;
    const LaunchOutcome outcome = baseline->run(*drawn, plan_, seed, memory_alone, limits());
    if (outcome.report) baseline_counts.push_back(cost(*outcome.report));
  }
  if (counts.empty()) return;
  verdict_.timing = summary_of(std::move(counts), timed_number_, true);
  if (baseline) verdict_.baseline = summary_of(std::move(baseline_counts), timed_number_, true);
}

void Referee::measure_on_gpu() {
  std::vector<CaseRef> drawn;
  for (int i = 0; i < kTimedCases; ++i) {
    drawn.push_back(draw_case(task_,
                              derived_seed(submission_.seed, 2000 + static_cast<std::uint64_t>(i)),
                              timed_number_));
  }
  if (drawn.front()->shape.grid->count() == 0) return;
  const Floor floor = time_floor(task_, *drawn.front(), kernel_.signature, *devices_.gpu_facts);
  if (floor.value > 0) {
    verdict_.floor = floor.value;
    verdict_.floor_reason = floor.reason;
  }
  std::unique_lock alone(devices_.gpu_use);
  const WaitLimits limit = limits();
  JudgedKernel kernel(*devices_.gpu, *kernel_.cubin, kernel_.signature);
  CaseCheck check(kernel, task_, plan_, verdict_, {}, limit);
  std::optional<JudgedKernel> baseline;
  if (baseline_) baseline.emplace(*devices_.gpu, *baseline_->cubin, baseline_->signature);
  SeriesTimes times;
  try {
    times = time_on_gpu(kernel, baseline ? &*baseline : nullptr, small_, drawn, plan_, check,
                        derived_seed(submission_.seed, 4), alone, limit);
  } catch (const DriverError& error) {
    throw Ruling{VerdictStatus::crash, error.what()};
  } catch (const LaunchConfigError& error) {
    throw Ruling{VerdictStatus::crash, error.what()};
  }
  verdict_.timing = summary_of(std::move(times.kernel), timed_number_, false);
  if (baseline) verdict_.baseline = summary_of(std::move(times.baseline), timed_number_, false);
  compare_with_floor(verdict_.timing->median, "ms");
}

}  // namespace kernwright
