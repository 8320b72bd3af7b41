// One judgement, step by step.
#pragma once

#include "tune/judge/case_check.h"
#include "tune/judge/judge.h"
#include "tune/judge/judged_text.h"
#include "tune/judge/launch_plan.h"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace kernwright {

/// The devices of a judgement.
struct JudgeDevices {
  RemoteDevice& simulated;
  RemoteDevice* gpu = nullptr;             ///< null: there is no GPU
  const DeviceFacts* gpu_facts = nullptr;  ///< of the GPU, usable without holding `gpu_use`
  /// Held while the GPU is used: two on one would disturb each other's times.
  std::mutex& gpu_use;
};

/// Makes one verdict. Used once.
class Judgement {
 public:
  Judgement(const JudgeDevices& devices, const Submission& submission, const Task& task);

  /// As Judge::judge().
  Verdict judge();

 private:
  using SecondsField = double Verdict::*;
  /// The kernel, or its baseline.
  struct Party {
    Verdict& verdict;
    JudgedText text{};
    ContentsPlan plan{};
    /// Instructions and transactions of a launch, by the case's number where they are known.
    std::map<int, double> launch_costs{};
  };

  void timed_step(SecondsField seconds, const std::function<void()>& step);
  void run();
  void compile();
  void compile_baseline(const std::optional<KernelSignature>& declared);
  /// As draw_case(), for the kernel. If an argument to be written is const, the mistake is the
  /// task's if the task has a signature, else the text's.
  CaseRef make_case(std::uint64_t seed, int number) const;
  void check_first_case() const;
  void draw_cases();
  void plan_baseline();
  /// All cases on each device, then, if `at_length`, further launches of the small one.
  void check(Party& party, bool at_length);
  void check_on(Party& party, RemoteDevice& device, const ObjectCode& code, bool at_length);
  std::vector<int> numbers_on(bool is_simulated) const;
  void check_at_length(Party& party, CaseCheck& check, bool is_simulated);
  void run_other_sizes(CaseCheck& check, std::vector<int> numbers);
  void repeat(Party& party, CaseCheck& check, int number, const Repetition& repetition,
              double seconds_each);
  /// Throws InvalidArgument where the device would launch no kernel so.
  void require_launchable(RemoteDevice& device, const LaunchShape& shape) const;
  void measure();
  void measure_by_counts();
  std::vector<double> count_cases(Party& party, const std::vector<CaseRef>& cases);
  void measure_on_gpu();
  /// Other inputs of the timed case.
  std::vector<CaseRef> draw_timed(int count) const;
  double timeout_seconds() const;
  WaitLimits limits() const;

  const JudgeDevices& devices_;
  const Submission& submission_;
  const Task& task_;
  Verdict verdict_, baseline_verdict_;  ///< the latter is never returned
  Party kernel_{verdict_};
  std::optional<Party> baseline_;
  std::vector<CaseRef> cases_;
  CaseRef small_;  ///< the smallest of those with elements
  int timed_number_ = 0;
};

}  // namespace kernwright
