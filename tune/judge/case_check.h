// Launches cases on one device and judges their results.
#pragma once

#include "tune/judge/judged_kernel.h"
#include "tune/judge/verdict.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// The contents of each argument before a launch.
using ContentsPlan = std::vector<Contents>;

/// The first plan. Arrays without const in the signature are free if their expected value does not
/// depend on their contents. Throws InvalidArgument for a const workspace.
ContentsPlan first_plan(const Task& task, const HostCase& host_case,
                        const KernelSignature& signature);

/// One kernel on one device. Right cases are added to the verdict. The first wrong one ends the
/// judgement: throws Ruling.
class CaseCheck {
 public:
  /// `checks`: of the simulated device; nothing: none. All must outlive the object.
  CaseCheck(JudgedKernel& kernel, const Task& task, ContentsPlan& plan, Verdict& verdict,
            std::optional<CheckOptions> checks, WaitLimits limits);

  /// One launch, in the module of those before. If the kernel adds to its outputs, the plan
  /// changes: they hold the task's inputs from now on.
  void run(const HostCase& host_case, const LaunchSetting& setting);
  /// The same without a row in the verdict when it is right.
  void run_again(const HostCase& host_case, const LaunchSetting& setting);
  /// The next launch is of a new module.
  void forget_module() noexcept { kernel_.forget_module(); }
  /// Whether a launch of a series left the expected contents. Uses no device.
  bool accepts(const HostCase& host_case, const LaunchOutcome& outcome) const;
  /// Compares the contents left by a launch of a series; `seed` and `limits` are for launches that
  /// find the reason.
  void compare_outcome(const HostCase& host_case, const LaunchOutcome& outcome, std::uint64_t seed,
                       const WaitLimits& limits);

  /// The report of the last launch, on the simulated device.
  const std::optional<CheckReport>& last_report() const noexcept { return report_; }

 private:
  struct Attempt {
    VerdictStatus status = VerdictStatus::accepted;
    CaseResult result;
    std::vector<JudgeFinding> findings;
    bool is_refused = false;  ///< its launch, before it began
    bool is_right() const noexcept { return status == VerdictStatus::accepted; }
  };
  Attempt attempt(const HostCase& host_case, const ContentsPlan& contents,
                  const LaunchSetting& setting);
  Attempt tried(const HostCase& host_case, const LaunchSetting& setting);
  bool adds_to_outputs(const HostCase& host_case, LaunchSetting setting);
  std::optional<CheckOptions> check_options(const HostCase& host_case,
                                            const LaunchSetting& setting) const;
  void look_at(const HostCase& host_case, const ContentsPlan& contents,
               const LaunchOutcome& outcome, Attempt& attempt) const;
  void look_at_findings(const CheckReport& report, Attempt& attempt) const;
  void look_at_array(const HostCase& host_case, const HostValue& after, std::size_t index,
                     Attempt& attempt) const;
  CaseResult case_result(const HostCase& host_case) const;
  std::string argument_name(std::size_t index) const;
  bool is_right_again(const HostCase& host_case, const LaunchSetting& setting);
  bool depends_on_order(const HostCase& host_case, const LaunchSetting& setting);
  bool depends_on_contents(const HostCase& host_case, const LaunchSetting& setting);
  void find_reason(const HostCase& host_case, const LaunchSetting& setting, Attempt& attempt);
  [[noreturn]] void rule(const HostCase& host_case, const LaunchSetting& setting, Attempt attempt);

  JudgedKernel& kernel_;
  const Task& task_;
  ContentsPlan& plan_;
  Verdict& verdict_;
  std::optional<CheckOptions> checks_;
  WaitLimits limits_;
  std::optional<CheckReport> report_;
  HostValues after_;  ///< what the last launch left
};

}  // namespace kernwright
