// Compares, and asks by further launches why a result is wrong.
#include "tune/judge/case_check.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "tune/judge/ruling.h"

namespace kernwright {
namespace {

JudgeFinding finding_of(const sim::Finding& found) {
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

bool has_poison(const ContentsPlan& contents) {
  return std::find(contents.begin(), contents.end(), Contents::poisoned) != contents.end();
}

}  // namespace

ContentsPlan first_plan(const Task& task, const HostCase& of, const KernelSignature& signature) {
  ContentsPlan plan(of.inputs.size(), Contents::given);
  const std::vector<bool> counts = contents_that_count(task, of);
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    if (signature.parameters[i].pointee_const) continue;
    if (of.expected[i] && !counts[i]) plan[i] = Contents::poisoned;
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

void CaseCheck::run(const HostCase& of, std::uint64_t seed) {
  Attempt made = tried(of, seed);
  if (!made.is_right()) rule(of, seed, std::move(made));
  verdict_.cases.push_back(std::move(made.result));
}

void CaseCheck::run_again(const HostCase& of, std::uint64_t seed, std::uint64_t before) {
  Attempt made = tried(of, seed, before);
  if (!made.is_right()) rule(of, seed, std::move(made));
}

bool CaseCheck::accepts(const HostCase& of, const LaunchOutcome& outcome) const {
  Attempt made;
  look_at(of, outcome, made);
  return made.is_right();
}

void CaseCheck::compare_outcome(const HostCase& of, const LaunchOutcome& outcome,
                                std::uint64_t seed, const WaitLimits& limits) {
  limits_ = limits;
  Attempt made;
  made.result = result_of(of);
  look_at(of, outcome, made);
  if (!made.is_right()) rule(of, seed, std::move(made));
}

/// A kernel may be wrong on random bytes because it adds to the contents of the task's inputs. Then
/// it is right on those, and gets them from now on.
CaseCheck::Attempt CaseCheck::tried(const HostCase& of, std::uint64_t seed, std::uint64_t before) {
  Attempt made = attempt(of, plan_, seed, before);
  if (made.is_right() || made.status == VerdictStatus::timeout || !has_poison(plan_)) return made;
  if (made.status == VerdictStatus::wrong && is_right_again(of, plan_, seed)) return made;
  const ContentsPlan given(plan_.size(), Contents::given);
  kernel_.forget_module();
  Attempt other = attempt(of, given, seed, before);
  if (!other.is_right()) return made;
  plan_ = given;
  return other;
}

CaseCheck::Attempt CaseCheck::attempt(const HostCase& of, const ContentsPlan& contents,
                                      std::uint64_t seed, std::uint64_t before) {
  Attempt made;
  made.result = result_of(of);
  const auto fail = [&](VerdictStatus status, const std::string& message) {
    made.status = status;
    made.result.message = message;
  };
  try {
    LaunchOutcome outcome = kernel_.run(of, contents, seed, checks_, limits_, before);
    look_at(of, outcome, made);
    report_ = std::move(outcome.report);
  } catch (const Timeout&) {
    fail(VerdictStatus::timeout,
         format("the launch did not end within the {} ms for all", limits_.timeout.count()));
  } catch (const DeviceFault& error) {
    sim::Finding found;
    found.fault = error.report;
    made.findings.push_back(finding_of(found));
    fail(VerdictStatus::finding, error.what());
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

CaseResult CaseCheck::result_of(const HostCase& of) const {
  const DeviceFacts& facts = kernel_.device().facts(limits_);
  return {.number = of.number,
          .seed = of.seed,
          .arguments = of.arguments(),
          .device = facts.is_simulated ? "simulated" : facts.name,
          .status = "correct",
          .message = {},
          .argument = {},
          .difference = {}};
}

void CaseCheck::look_at(const HostCase& of, const LaunchOutcome& outcome, Attempt& attempt) const {
  if (outcome.report) look_at_findings(*outcome.report, attempt);
  if (attempt.is_right() && !outcome.damage.empty()) {
    attempt.status = VerdictStatus::finding;
    attempt.result.message = outcome.damage;
    JudgeFinding found;
    found.kind = "bounds";
    found.message = outcome.damage;
    attempt.findings.push_back(std::move(found));
  }
  for (std::size_t i = 0; i < of.inputs.size() && attempt.is_right(); ++i) {
    if (of.inputs[i].is_array()) look_at_array(of, outcome.after[i], i, attempt);
  }
}

void CaseCheck::look_at_findings(const CheckReport& report, Attempt& attempt) const {
  for (const sim::Finding& each : report.findings) attempt.findings.push_back(finding_of(each));
  if (report.findings.empty()) return;
  const Fault& first = report.findings.front().fault;
  attempt.status = VerdictStatus::finding;
  for (const sim::Finding& each : report.findings) {
    if (each.fault.kind == FaultKind::timeout) attempt.status = VerdictStatus::timeout;
  }
  attempt.result.message =
      first.line > 0 ? format("line {}: {}", first.line, first.message) : first.message;
}

void CaseCheck::look_at_array(const HostCase& of, const HostValue& after, std::size_t index,
                              Attempt& attempt) const {
  const bool is_const = kernel_.signature().parameters[index].pointee_const;
  // A const argument is expected to keep its contents.
  const HostValue* expected = is_const || !of.expected[index] ? nullptr : &*of.expected[index];
  const HostValue& before = of.inputs[index];
  if (expected == nullptr && after.bytes == before.bytes) return;
  const std::string name = argument_name(index);
  const auto different =
      compare(after, expected != nullptr ? *expected : before,
              expected != nullptr ? task_.tolerance_of(after.dtype) : Tolerance{});
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

bool CaseCheck::is_right_again(const HostCase& of, const ContentsPlan& plan, std::uint64_t seed) {
  kernel_.forget_module();
  return attempt(of, plan, seed).is_right();
}

void CaseCheck::rule(const HostCase& of, std::uint64_t seed, Attempt attempt) {
  std::string why = attempt.result.message;
  if (attempt.status == VerdictStatus::wrong) {
    if (is_right_again(of, plan_, seed)) {
      attempt.status = VerdictStatus::cheating;
      why += "; a new module gets it right, so the result depends on earlier launches";
    } else if (has_poison(plan_) && is_right_again(of, plan_, seed + 1)) {
      attempt.status = VerdictStatus::cheating;
      why +=
          "; it is right on other contents of the memory that it writes, so the result depends "
          "on what memory held before";
    }
  }
  attempt.result.status = verdict_status_name(attempt.status);
  attempt.result.message = why;
  verdict_.findings.insert(verdict_.findings.end(), attempt.findings.begin(),
                           attempt.findings.end());
  verdict_.cases.push_back(std::move(attempt.result));
  Ruling ruling{attempt.status, format("case {} (seed {}): {}", of.number, of.seed, why)};
  if (attempt.is_refused) ruling.refused = of.shape;
  throw Ruling(ruling);
}

}  // namespace kernwright
