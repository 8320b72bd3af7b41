// Compares, and asks by further launches why a result is wrong.
#include "tune/judge/case_check.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/ruling.h"

namespace kernwright {
namespace {

JudgeFinding judge_finding(const sim::Finding& found) {
  const Fault& fault = found.fault;
  return {.kind = fault_kind_name(fault.kind),
          .message = fault.message,
          .hint = found.hint,
          .file = fault.file,
          .line = fault.line,
          .other_line = found.other ? found.other->line : 0,
          .opcode = fault.opcode,
          .block = fault.block,
          .thread = fault.thread,
          .allocation = fault.allocation,
          .details = fault.further_lines(),
          .count = found.count};
}

bool is_free(const ContentsPlan& contents) {
  return std::find(contents.begin(), contents.end(), Contents::free) != contents.end();
}

/// Cases of at most so many bytes run on one thread of the host, so that each judgement with the
/// same seed is the same.
constexpr std::uint64_t kReplayedBytes = std::uint64_t{1} << 20;

/// Of contents to which a kernel adds, beside those that are clear.
constexpr double kUsualStep = 5;

/// A write to an array that is const.
bool changes_const(const Fault& fault) {
  return fault.message.ends_with("in read-only memory") &&
         fault.allocation.find("constant variable") == std::string::npos;
}

constexpr const char* kChangesConst = " of an argument that is const";

}  // namespace

ContentsPlan first_plan(const Task& task, const HostCase& host_case,
                        const KernelSignature& signature) {
  ContentsPlan plan(host_case.inputs.size(), Contents::given);
  const std::vector<bool> counts = contents_that_count(task, host_case);
  for (std::size_t i = 0; i < host_case.inputs.size(); ++i) {
    const bool is_scratch = task.workspace.count(i) > 0;
    if (signature.parameters[i].pointee_const) {
      if (!is_scratch) continue;
      throw InvalidArgument(
          format("argument {} of the task is const, and cannot be a workspace", i));
    }
    if (is_scratch) plan[i] = Contents::scratch;
    if (host_case.expected[i] && !counts[i]) plan[i] = Contents::free;
  }
  return plan;
}

CaseCheck::CaseCheck(JudgedKernel& kernel, const Task& task, ContentsPlan& plan, Verdict& verdict,
                     std::optional<CheckOptions> checks, WaitLimits limits)
    : kernel_(kernel),
      task_(task),
      plan_(plan),
      verdict_(verdict),
      checks_(std::move(checks)),
      limits_(std::move(limits)) {}

void CaseCheck::run(const HostCase& host_case, const LaunchSetting& setting) {
  Attempt made = tried(host_case, setting);
  if (!made.is_right()) rule(host_case, setting, std::move(made));
  verdict_.cases.push_back(std::move(made.result));
}

void CaseCheck::run_again(const HostCase& host_case, const LaunchSetting& setting) {
  Attempt made = tried(host_case, setting);
  if (!made.is_right()) rule(host_case, setting, std::move(made));
}

bool CaseCheck::accepts(const HostCase& host_case, const LaunchOutcome& outcome) const {
  Attempt made;
  look_at(host_case, plan_, outcome, made);
  return made.is_right();
}

void CaseCheck::compare_outcome(const HostCase& host_case, const LaunchOutcome& outcome,
                                std::uint64_t seed, const WaitLimits& limits) {
  limits_ = limits;
  Attempt made;
  made.result = case_result(host_case);
  look_at(host_case, plan_, outcome, made);
  if (!made.is_right()) rule(host_case, {.seed = seed}, std::move(made));
}

/// A kernel may be wrong on any other contents than the task's because it adds to its outputs. Then
/// they hold those from now on.
CaseCheck::Attempt CaseCheck::tried(const HostCase& host_case, const LaunchSetting& setting) {
  Attempt made = attempt(host_case, plan_, setting);
  const bool is_clear = made.is_right() || made.status == VerdictStatus::timeout ||
                        made.is_refused || made.status == VerdictStatus::cheating;
  if (is_clear || !is_free(plan_) || is_right_again(host_case, setting)) return made;
  ContentsPlan given = plan_;
  std::replace(given.begin(), given.end(), Contents::free, Contents::given);
  kernel_.forget_module();
  LaunchSetting again = setting;
  again.repeats = true;
  Attempt other = attempt(host_case, given, again);
  if (!other.is_right()) return made;
  if (!adds_to_outputs(host_case, setting)) {
    made.status = VerdictStatus::cheating;
    made.result.message +=
        "; it is right on the contents that the task gives, so the result depends on what memory "
        "held before. (If kernels may rely on those, the task says so by inout=.)";
    return made;
  }
  plan_ = given;
  return other;
}

/// Whether the kernel makes of steps in its outputs what one that adds to them makes, in one way
/// for steps that begin upwards, for those that begin downwards, and for small ones.
bool CaseCheck::adds_to_outputs(const HostCase& host_case, LaunchSetting setting) {
  const std::size_t count = host_case.inputs.size();
  std::vector<std::uint32_t> ways(count, ~0U);
  std::vector<bool> is_wrong(count, false);
  for (const double sign : {1.0, -1.0, 0.0}) {  // 0: steps of a usual size
    setting.steps.assign(count, 0);
    setting.repeats = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (plan_[i] != Contents::free) continue;
      const ScalarType dtype = host_case.inputs[i].dtype;
      const double clear =
          step_size(*host_case.expected[i], dtype, task_.tolerance_for(dtype).absolute);
      setting.steps[i] = sign != 0 ? sign * clear : std::min(clear, kUsualStep);
    }
    kernel_.forget_module();
    const Attempt made = attempt(host_case, plan_, setting);
    kernel_.forget_module();
    if (made.status != VerdictStatus::wrong && !made.is_right()) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (plan_[i] != Contents::free) continue;
      const HostValue& expected = *host_case.expected[i];
      const Tolerance tolerance = task_.tolerance_for(host_case.inputs[i].dtype);
      if (compare(after_[i], expected, tolerance)) is_wrong[i] = true;
      ways[i] &= addition_ways(after_[i], expected, host_case.inputs[i], setting.steps[i],
                               tolerance.relative, tolerance.absolute);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (is_wrong[i] && ways[i] == 0) return false;
  }
  return std::find(is_wrong.begin(), is_wrong.end(), true) != is_wrong.end();
}

std::optional<CheckOptions> CaseCheck::check_options(const HostCase& host_case,
                                                     const LaunchSetting& setting) const {
  std::optional<CheckOptions> checks = checks_;
  if (checks) {
    checks->schedule_seed = setting.schedule;
    checks->replays = host_case.bytes() <= kReplayedBytes;
  }
  return checks;
}

CaseCheck::Attempt CaseCheck::attempt(const HostCase& host_case, const ContentsPlan& contents,
                                      const LaunchSetting& setting) {
  Attempt made;
  made.result = case_result(host_case);
  const auto fail = [&](VerdictStatus status, const std::string& message) {
    made.status = status;
    made.result.message = message;
  };
  try {
    LaunchOutcome outcome =
        kernel_.run(host_case, contents, setting, check_options(host_case, setting), limits_);
    look_at(host_case, contents, outcome, made);
    report_ = std::move(outcome.report);
    after_ = std::move(outcome.after);
  } catch (const Timeout&) {
    fail(VerdictStatus::timeout,
         format("the launch did not end within the {} ms for all", limits_.timeout.count()));
  } catch (const DeviceFault& error) {
    sim::Finding found;
    found.fault = error.report;
    made.findings.push_back(judge_finding(found));
    if (changes_const(error.report)) {
      fail(VerdictStatus::cheating, error.report.message + kChangesConst);
    } else {
      fail(VerdictStatus::finding, error.what());
    }
  } catch (const UnsupportedInstruction&) {
    throw;
  } catch (const LaunchConfigError& error) {
    fail(VerdictStatus::crash, error.what());
    made.is_refused = true;
  } catch (const DriverError& error) {  // DeviceLost too
    fail(VerdictStatus::crash, error.what());
  } catch (const WorkerLost& error) {
    fail(VerdictStatus::crash, error.what());
  }
  return made;
}

CaseResult CaseCheck::case_result(const HostCase& host_case) const {
  const DeviceFacts& facts = kernel_.device().facts(limits_);
  return {.number = host_case.number,
          .seed = host_case.seed,
          .arguments = host_case.arguments(),
          .device = facts.is_simulated ? "simulated" : facts.name,
          .status = "correct",
          .message = {},
          .argument = {},
          .difference = {}};
}

void CaseCheck::look_at(const HostCase& host_case, const ContentsPlan& contents,
                        const LaunchOutcome& outcome, Attempt& attempt) const {
  if (outcome.report) look_at_findings(*outcome.report, attempt);
  if (attempt.is_right() && !outcome.damage.empty()) {
    attempt.status = VerdictStatus::finding;
    attempt.result.message = outcome.damage;
    JudgeFinding found;
    found.kind = "bounds";
    found.message = outcome.damage;
    attempt.findings.push_back(std::move(found));
  }
  for (std::size_t i = 0; i < host_case.inputs.size() && attempt.is_right(); ++i) {
    const bool counts = host_case.inputs[i].is_array() && contents[i] != Contents::scratch;
    if (counts) look_at_array(host_case, outcome.after[i], i, attempt);
  }
}

void CaseCheck::look_at_findings(const CheckReport& report, Attempt& attempt) const {
  for (const sim::Finding& each : report.findings) attempt.findings.push_back(judge_finding(each));
  if (report.findings.empty()) return;
  const Fault& first = report.findings.front().fault;
  attempt.status = VerdictStatus::finding;
  for (const sim::Finding& each : report.findings) {
    if (each.fault.kind == FaultKind::timeout) attempt.status = VerdictStatus::timeout;
  }
  attempt.result.message =
      first.line > 0 ? format("line {}: {}", first.line, first.message) : first.message;
  for (const sim::Finding& each : report.findings) {
    if (!changes_const(each.fault)) continue;
    attempt.status = VerdictStatus::cheating;
    attempt.result.message =
        format("line {}: {}{}", each.fault.line, each.fault.message, kChangesConst);
  }
}

void CaseCheck::look_at_array(const HostCase& host_case, const HostValue& after, std::size_t index,
                              Attempt& attempt) const {
  const bool is_const = kernel_.signature().parameters[index].pointee_const;
  // A const argument is expected to keep its contents.
  const HostValue* expected =
      is_const || !host_case.expected[index] ? nullptr : &*host_case.expected[index];
  const HostValue& before = host_case.inputs[index];
  if (expected == nullptr && after.bytes == before.bytes) return;
  const std::string name = argument_name(index);
  const auto different =
      compare(after, expected != nullptr ? *expected : before,
              expected != nullptr ? task_.tolerance_for(after.dtype) : Tolerance{});
  if (!different && expected != nullptr) return;
  attempt.result.argument = name;
  attempt.result.difference = different;
  attempt.status = is_const ? VerdictStatus::cheating : VerdictStatus::wrong;
  const std::string what = different ? different->to_string() : "its bytes differ";
  attempt.result.message = expected != nullptr
                               ? format("{}{}", name, (different->place.empty() ? ": " : "") + what)
                               : format("{} must stay as it is{}: {}", name,
                                        is_const ? ", since it is const" : "", name + what);
}

std::string CaseCheck::argument_name(std::size_t index) const {
  const std::string& name = kernel_.signature().parameters[index].name;
  return name.empty() ? format("argument {}", index) : name;
}

bool CaseCheck::is_right_again(const HostCase& host_case, const LaunchSetting& setting) {
  LaunchSetting alone = setting;
  alone.before = 0;
  alone.repeats = true;
  kernel_.forget_module();
  return attempt(host_case, plan_, alone).is_right();
}

/// Whether it is right in another order of warps and blocks, in a new module.
bool CaseCheck::depends_on_order(const HostCase& host_case, const LaunchSetting& setting) {
  if (!checks_) return false;
  LaunchSetting other = setting;
  if (setting.schedule) {
    other.schedule.reset();
    return is_right_again(host_case, other);
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    other.schedule = derived_seed(setting.seed, 50 + i);
    if (is_right_again(host_case, other)) return true;
  }
  return false;
}

/// Whether it is right on other contents of its outputs, in a new module.
bool CaseCheck::depends_on_contents(const HostCase& host_case, const LaunchSetting& setting) {
  if (!is_free(plan_)) return false;
  LaunchSetting other = setting;
  other.steps.clear();
  ++other.seed;
  for (const Fill fill : {Fill::random, Fill::zeros}) {
    other.fill = fill;
    if (is_right_again(host_case, other)) return true;
  }
  return false;
}

void CaseCheck::find_reason(const HostCase& host_case, const LaunchSetting& setting,
                            Attempt& attempt) {
  std::string& why = attempt.result.message;
  if (is_right_again(host_case, setting)) {
    attempt.status = VerdictStatus::cheating;
    why += "; a new module gets it right, so the result depends on earlier launches";
  } else if (depends_on_order(host_case, setting)) {
    attempt.status = VerdictStatus::finding;
    why += "; in another order of warps and blocks it is right, so the result depends on the order";
    JudgeFinding found;
    found.kind = "order";
    found.message = why;
    found.hint = "order accesses of different threads by barriers, or make them independent";
    attempt.findings.push_back(std::move(found));
  } else if (depends_on_contents(host_case, setting)) {
    attempt.status = VerdictStatus::cheating;
    why +=
        "; it is right on other contents of the memory that it writes, so the result depends on "
        "what memory held before";
  }
}

void CaseCheck::rule(const HostCase& host_case, const LaunchSetting& setting, Attempt attempt) {
  if (attempt.status == VerdictStatus::wrong) find_reason(host_case, setting, attempt);
  const std::string why = attempt.result.message;
  attempt.result.status = verdict_status_name(attempt.status);
  verdict_.findings.insert(verdict_.findings.end(), attempt.findings.begin(),
                           attempt.findings.end());
  verdict_.cases.push_back(std::move(attempt.result));
  Ruling ruling{attempt.status,
                format("case {} (seed {}): {}", host_case.number, host_case.seed, why)};
  if (attempt.is_refused) ruling.refused = host_case.shape;
  throw Ruling(ruling);
}

}  // namespace kernwright
