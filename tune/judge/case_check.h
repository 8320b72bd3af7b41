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

/// The first plan. It poisons arrays without const in the signature, if their expected value does
/// not depend on their contents.
ContentsPlan first_plan(const Task& task, const HostCase& of, const KernelSignature& signature);

/// One kernel on one device. Right cases are added to the verdict. The first wrong one ends the
/// judgement: throws Ruling.
class CaseCheck {
 public:
  /// `checks`: of the simulated device; nothing: none. All must outlive the object.
  CaseCheck(JudgedKernel& kernel, const Task& task, ContentsPlan& plan, Verdict& verdict,
            std::optional<CheckOptions> checks, WaitLimits limits);

  /// One launch, in the module of those before. If the kernel is wrong on random bytes but right on
  /// the task's inputs, the plan changes.
  void run(const HostCase& of, std::uint64_t seed);
  /// The same without a row in the verdict when it is right. `before`: earlier launches of the same
  /// case in the same module; their results are not compared.
  void run_again(const HostCase& of, std::uint64_t seed, std::uint64_t before = 0);
  /// Whether a launch of a series left the expected contents. Uses no device.
  bool accepts(const HostCase& of, const LaunchOutcome& outcome) const;
  /// Compares the contents left by a launch of a series; `seed` and `limits` are for launches that
  /// find the reason.
  void compare_outcome(const HostCase& of, const LaunchOutcome& outcome, std::uint64_t seed,
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
  Attempt attempt(const HostCase& of, const ContentsPlan& contents, std::uint64_t seed,
                  std::uint64_t before = 0);
  Attempt tried(const HostCase& of, std::uint64_t seed, std::uint64_t before = 0);
  void look_at(const HostCase& of, const LaunchOutcome& outcome, Attempt& attempt) const;
  void look_at_findings(const CheckReport& report, Attempt& attempt) const;
  void look_at_array(const HostCase& of, const HostValue& after, std::size_t index,
                     Attempt& attempt) const;
  CaseResult result_of(const HostCase& of) const;
  std::string argument_name(std::size_t index) const;
  bool is_right_again(const HostCase& of, const ContentsPlan& plan, std::uint64_t seed);
  [[noreturn]] void rule(const HostCase& of, std::uint64_t seed, Attempt attempt);

  JudgedKernel& kernel_;
  const Task& task_;
  ContentsPlan& plan_;
  Verdict& verdict_;
  std::optional<CheckOptions> checks_;
  WaitLimits limits_;
  std::optional<CheckReport> report_;
};

}  // namespace kernwright
