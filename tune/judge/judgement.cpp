// The order of a judgement.
#include "tune/judge/judgement.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/baseline.h"
#include "tune/judge/floor.h"
#include "tune/judge/packing.h"
#include "tune/judge/ruling.h"
#include "tune/judge/series_timing.h"
#include "tune/judge/terminal_text.h"
#include "tune/measure/launch_counts.h"

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

/// With a GPU, larger cases run only there.
constexpr std::uint64_t kSimulatedBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kTellingBytes = std::uint64_t{1} << 16;
constexpr std::size_t kMostFindings = 100;  // of one launch, different ones
constexpr int kTimedCases = 3, kCountedCases = 3;
/// The part of the timeout that each of these may take: compared launches beyond the cases,
/// launches without a comparison of one case. The least numbers of them have all of the timeout.
constexpr double kComparedShare = 0.3, kUncomparedShare = 0.2;
constexpr std::uint64_t kCheapBytes = std::uint64_t{1} << 17;
constexpr double kMostSizedCost = 5e5;  // instructions and transactions

/// Adds the time of a step, also when it throws.
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

CaseRef smallest_filled_case(const std::vector<CaseRef>& cases) {
  CaseRef found;
  for (const CaseRef& each : cases) {
    if (each->bytes() == 0 || each->shape.grid->count() == 0) continue;
    if (found == nullptr || each->bytes() < found->bytes()) found = each;
  }
  return found;
}

bool is_small_enough(const HostCase& host_case) { return host_case.bytes() <= kSimulatedBytes; }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool has_same_sizes(const HostCase& one, const HostCase& other) {
  return one.inputs.size() == other.inputs.size() &&
         std::equal(one.inputs.begin(), one.inputs.end(), other.inputs.begin(),
                    [](const HostValue& a, const HostValue& b) {
                      return a.kind == b.kind && a.bytes.size() == b.bytes.size();
                    });
}

double cost(const CheckReport& report) { return launch_counts(report.profile.total()).cost(); }

void note(Verdict& verdict, const Floor& floor) {
  if (floor.value <= 0) return;
  verdict.floor = floor.value;
  verdict.floor_reason = floor.reason;
}

void check_floor(Verdict& verdict, const Floor& floor, double value, const char* unit) {
  note(verdict, floor);
  if (value >= floor.value) return;
  throw Ruling{VerdictStatus::impossible,
               format("{:.6g} {} is less than the {:.6g} that the device needs for {}", value, unit,
                      floor.value, floor.reason)};
}

}  // namespace

Judgement::Judgement(const JudgeDevices& devices, const Submission& submission, const Task& task)
    : devices_(devices), submission_(submission), task_(task) {}

WaitLimits Judgement::limits() const { return WaitLimits{}.within(submission_.timeout); }

double Judgement::timeout_seconds() const {
  return std::chrono::duration<double>(submission_.timeout).count();
}

void Judgement::timed_step(SecondsField seconds, const std::function<void()>& step) {
  const AddSeconds part(verdict_.*seconds);
  step();
}

Verdict Judgement::judge() {
  verdict_.seed = submission_.seed;
  timed_step(&Verdict::seconds, [this] { run(); });
  make_terminal_text(verdict_);
  return verdict_;
}

void Judgement::run() {
  try {
    timed_step(&Verdict::compile_seconds, [this] { compile(); });
    draw_cases();
    timed_step(&Verdict::check_seconds, [this] { check(kernel_, true); });
    if (baseline_) baseline_step([this] { check(*baseline_, false); });
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

void Judgement::compile() {
  const DeviceFacts& simulated = devices_.simulated.facts();
  const DeviceFacts* gpu = devices_.gpu_facts;
  verdict_.device = gpu == nullptr ? simulated.name : gpu->name;
  // First: an invalid task is not the text's mistake.
  std::optional<KernelSignature> declared = declared_signature(task_, simulated);
  if (task_.signature.empty()) declared.reset();
  kernel_.text = compile_judged(submission_.source, task_, simulated, gpu, verdict_, limits());
  if (declared) {
    const std::string difference = signature_difference(kernel_.text.signature, *declared);
    if (!difference.empty()) throw Ruling{VerdictStatus::compile, difference};
  }
  if (submission_.baseline) compile_baseline(declared);
}

void Judgement::compile_baseline(const std::optional<KernelSignature>& declared) {
  baseline_.emplace(Party{baseline_verdict_});
  baseline_step([&] {
    baseline_->text = compile_judged(*submission_.baseline, task_, devices_.simulated.facts(),
                                     devices_.gpu_facts, baseline_verdict_, limits());
    if (!declared) return;
    const std::string difference = signature_difference(baseline_->text.signature, *declared);
    if (!difference.empty()) throw Ruling{VerdictStatus::compile, difference};
  });
}

CaseRef Judgement::make_case(std::uint64_t seed, int number) const {
  CaseRef made = draw_case(task_, seed, number);
  check_values(kernel_.text.signature, made->inputs);
  try {
    check_writable(kernel_.text.signature, *made);
  } catch (const InvalidArgument& error) {
    if (!task_.signature.empty()) throw;
    throw Ruling{VerdictStatus::compile, error.what()};
  }
  return made;
}

/// Without a signature in the task, the text must accept the task's inputs.
void Judgement::check_first_case() const {
  const HostValues first = task_.inputs(submission_.seed, std::min(1, task_.cases - 1));
  try {
    check_values(kernel_.text.signature, first);
  } catch (const InvalidArgument& error) {
    if (!task_.signature.empty()) throw;
    throw Ruling{VerdictStatus::compile,
                 format("the kernel does not take the task's inputs: {}", error.what())};
  }
}

void Judgement::draw_cases() {
  check_first_case();
  for (int number = 0; number < task_.cases; ++number) {
    cases_.push_back(make_case(submission_.seed, number));
  }
  const auto largest =
      std::max_element(cases_.begin(), cases_.end(),
                       [](const CaseRef& a, const CaseRef& b) { return a->bytes() < b->bytes(); });
  timed_number_ = task_.timed_case.value_or((*largest)->number);
  small_ = smallest_filled_case(cases_);
  if (small_ == nullptr) {
    throw InvalidArgument("all cases of the task are empty, so there is nothing to judge");
  }
  require_same(task_, *small_);
  verdict_.warnings = task_warnings(task_, cases_);
  // A case with some elements shows better what the reference makes of them.
  const CaseRef* telling = &small_;
  for (const CaseRef& each : cases_) {
    if (each->bytes() <= kTellingBytes && each->bytes() > (*telling)->bytes()) telling = &each;
  }
  kernel_.plan = first_plan(task_, **telling, kernel_.text.signature);
  if (baseline_) plan_baseline();
}

/// Its plan may become another one than the kernel's.
void Judgement::plan_baseline() {
  baseline_->plan = kernel_.plan;
  for (const CaseRef& each : cases_) {
    try {
      check_values(baseline_->text.signature, each->inputs);
      check_writable(baseline_->text.signature, *each);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(
          format("the baseline does not take the task's inputs: {}", error.what()));
    }
  }
}

void Judgement::check(Party& party, bool at_length) {
  if (party.text.ptx) check_on(party, devices_.simulated, *party.text.ptx, at_length);
  if (devices_.gpu == nullptr) return;
  const std::lock_guard alone(devices_.gpu_use);
  devices_.gpu->renew_if_large();
  check_on(party, *devices_.gpu, *party.text.cubin, at_length);
}

void Judgement::check_on(Party& party, RemoteDevice& device, const ObjectCode& code,
                         bool at_length) {
  const bool is_simulated = &device == &devices_.simulated;
  std::optional<CheckOptions> checks;
  if (is_simulated)
    checks.emplace(CheckOptions{.checks = submission_.checks, .limit = kMostFindings});
  JudgedKernel kernel(device, code, party.text.signature);
  CaseCheck check(kernel, task_, party.plan, party.verdict, checks, limits());
  try {
    for (const CaseRef& each : cases_) {
      if (is_simulated && devices_.gpu != nullptr && !is_small_enough(*each)) continue;
      check.run(*each, first_setting(submission_.seed, each->number));
    }
    if (is_simulated && devices_.gpu != nullptr && !is_small_enough(*small_)) return;
    if (at_length) check_at_length(party, check, is_simulated);
  } catch (const Ruling& ruling) {
    if (ruling.refused) require_launchable(device, *ruling.refused);
    throw;
  }
}

/// Cases with elements on this device, by number.
std::vector<int> Judgement::numbers_on(bool is_simulated) const {
  std::vector<int> numbers;
  for (const CaseRef& each : cases_) {
    const bool is_there = !is_simulated || devices_.gpu == nullptr || is_small_enough(*each);
    if (is_there && each->bytes() > 0 && each->shape.grid->count() > 0) {
      numbers.push_back(each->number);
    }
  }
  return numbers;
}

/// Some kernels are right for a count of launches only, for sizes that come once, for some contents
/// of their outputs or in one order. After every case once come launches of several sizes with all
/// results compared, and many launches with the last one compared.
void Judgement::check_at_length(Party& party, CaseCheck& check, bool is_simulated) {
  const std::vector<int> numbers = numbers_on(is_simulated);
  const bool has_timed = std::find(numbers.begin(), numbers.end(), timed_number_) != numbers.end();
  const int timed = has_timed ? timed_number_ : small_->number;
  const auto plan = further_launches(submission_.seed, small_->number, timed, numbers);
  const Clock::time_point begin = Clock::now();
  std::map<int, double> seconds;  // of a launch, by case
  std::size_t made = 0;
  for (const PlannedLaunch& each : plan) {
    const Clock::time_point start = Clock::now();
    check.run_again(*make_case(each.input_seed, each.number), each.setting);
    seconds[each.number] = seconds_since(start);
    const auto& report = check.last_report();
    if (report && !each.setting.schedule) party.launch_costs[each.number] = cost(*report);
    const bool is_late = seconds_since(begin) > kComparedShare * timeout_seconds();
    if (++made >= kLeastFurtherLaunches && is_late) break;
  }
  run_other_sizes(check, numbers);
  repeat(party, check, small_->number, kSmallRepetition, seconds[small_->number]);
  if (timed != small_->number) repeat(party, check, timed, kTimedRepetition, seconds[timed]);
  for (const PlannedLaunch& each : first_launches(submission_.seed, timed, numbers)) {
    check.forget_module();
    check.run_again(*make_case(each.input_seed, each.number), each.setting);
  }
}

/// A kernel may be right for the usual sizes alone: where they cost little, many more are tried.
void Judgement::run_other_sizes(CaseCheck& check, std::vector<int> numbers) {
  // The first cases of kw.Inputs always have the same sizes.
  const auto is_left_out = [&](int number) {
    return cases_[static_cast<std::size_t>(number)]->bytes() > kCheapBytes ||
           number == timed_number_ || number == small_->number;
  };
  numbers.erase(std::remove_if(numbers.begin(), numbers.end(), is_left_out), numbers.end());
  double spent = 0;
  std::size_t made = 0;
  std::set<int> costly;  // with other seeds; to draw one takes longer than a small launch
  for (const PlannedLaunch& each : sized_launches(submission_.seed, numbers)) {
    if (costly.count(each.number) > 0) continue;
    const CaseRef drawn = make_case(each.input_seed, each.number);
    if (drawn->bytes() > kCheapBytes) {
      costly.insert(each.number);
      continue;
    }
    check.run_again(*drawn, each.setting);
    if (const auto& report = check.last_report()) spent += cost(*report);
    if (++made >= kLeastFurtherLaunches && spent > kMostSizedCost) break;
  }
}

void Judgement::repeat(Party& party, CaseCheck& check, int number, const Repetition& repetition,
                       double seconds_each) {
  const auto known = party.launch_costs.find(number);
  const std::optional<double> cost =
      known == party.launch_costs.end() ? std::nullopt : std::optional(known->second);
  const std::uint64_t wanted = repetitions(repetition, submission_.seed, cost);
  const double in_time = kUncomparedShare * timeout_seconds() / std::max(seconds_each, 1e-9);
  const std::uint64_t seed = derived_seed(submission_.seed, 1990 + repetition.least);
  LaunchSetting setting{.seed = seed};
  setting.before =
      std::max(repetition.least, std::min(wanted, static_cast<std::uint64_t>(in_time)));
  // The same addresses, and many equal elements: no sign of the inputs of the launches before.
  const CaseRef compared = make_case(seed, number), first = make_case(seed ^ 1U, number);
  if (has_same_sizes(*compared, *first)) setting.before_case = first;
  check.run_again(*compared, setting);
}

void Judgement::require_launchable(RemoteDevice& device, const LaunchShape& shape) const {
  const ObjectCode code = empty_kernel(device.facts(limits()));
  RemoteLaunch launch{.kernel = device.load(code, "empty", limits()),
                      .grid = *shape.grid,
                      .block = shape.block,
                      .shared_bytes = shape.shared_bytes,
                      .cluster = shape.cluster,
                      .cooperative = shape.cooperative,
                      .arguments = {}};
  try {
    device.launch(launch, limits());
  } catch (const LaunchConfigError& error) {
    throw InvalidArgument(
        format("the task's launch suits no kernel, not even an empty one: {}", error.what()));
  }
  device.unload(launch.kernel, limits());
}

void Judgement::measure() {
  if (devices_.gpu == nullptr) {
    measure_by_counts();
  } else {
    measure_on_gpu();
  }
  if (verdict_.baseline && verdict_.timing->median > 0) {
    verdict_.speedup = verdict_.baseline->median / verdict_.timing->median;
  }
}

std::vector<CaseRef> Judgement::draw_timed(int count) const {
  std::vector<CaseRef> drawn;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = derived_seed(submission_.seed, 2000 + static_cast<std::uint64_t>(i));
    drawn.push_back(make_case(seed, timed_number_));
  }
  return drawn;
}

std::vector<double> Judgement::count_cases(Party& party, const std::vector<CaseRef>& cases) {
  const CheckOptions memory_alone{.checks = {"memory"}};
  JudgedKernel kernel(devices_.simulated, *party.text.ptx, party.text.signature);
  CaseCheck check(kernel, task_, party.plan, party.verdict, memory_alone, limits());
  std::vector<double> counts;
  for (const CaseRef& each : cases) {
    // A launch of its own module does all of its work, and counts it.
    check.forget_module();
    check.run_again(*each, {.seed = each->seed});
    const auto& report = check.last_report();
    if (!report) continue;  // nothing was launched
    counts.push_back(cost(*report));
    check_floor(party.verdict, count_floor(task_, *each, report->profile.total()), counts.back(),
                "instructions + transactions");
  }
  return counts;
}

void Judgement::measure_by_counts() {
  const std::vector<CaseRef> drawn = draw_timed(kCountedCases);
  std::vector<double> counts = count_cases(kernel_, drawn);
  if (counts.empty()) return;
  verdict_.timing = summarize_timing(std::move(counts), timed_number_, true);
  if (!baseline_) return;
  baseline_step([&] {
    verdict_.baseline = summarize_timing(count_cases(*baseline_, drawn), timed_number_, true);
  });
}

void Judgement::measure_on_gpu() {
  const std::vector<CaseRef> drawn = draw_timed(kTimedCases);
  if (drawn.front()->shape.grid->count() == 0) return;
  const Floor floor =
      time_floor(task_, *drawn.front(), kernel_.text.signature, *devices_.gpu_facts);
  note(verdict_, floor);
  std::unique_lock alone(devices_.gpu_use);
  TimedKernel kernel(*devices_.gpu, task_, kernel_.text, kernel_.plan, verdict_, limits());
  std::optional<TimedKernel> baseline;
  if (baseline_) {
    baseline.emplace(*devices_.gpu, task_, baseline_->text, baseline_->plan, baseline_verdict_,
                     limits());
  }
  try {
    time_on_gpu(kernel, baseline ? &*baseline : nullptr, small_, drawn,
                derived_seed(submission_.seed, 4), alone);
  } catch (const DriverError& error) {
    throw Ruling{VerdictStatus::crash, error.what()};
  } catch (const LaunchConfigError& error) {
    throw Ruling{VerdictStatus::crash, error.what()};
  }
  verdict_.timing = summarize_timing(std::move(kernel.times), timed_number_, false);
  if (baseline)
    verdict_.baseline = summarize_timing(std::move(baseline->times), timed_number_, false);
  check_floor(verdict_, floor, verdict_.timing->median, "ms");
  if (!baseline) return;
  baseline_step([&] { check_floor(baseline_verdict_, floor, verdict_.baseline->median, "ms"); });
}

}  // namespace kernwright
