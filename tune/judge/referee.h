// One judgement, step by step.
#pragma once

#include "tune/judge/case_check.h"
#include "tune/judge/judge.h"
#include "tune/judge/judged_text.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace kernwright {

/// Where a judgement runs.
struct JudgeDevices {
  RemoteDevice& simulated;
  RemoteDevice* gpu = nullptr;             ///< null: there is none
  const DeviceFacts* gpu_facts = nullptr;  ///< of the GPU, for those who do not hold `gpu_use`
  /// Held while the GPU is used: two on one would disturb each other's times.
  std::mutex& gpu_use;
};

/// Makes one verdict. Used once.
class Referee {
 public:
  Referee(const JudgeDevices& devices, const Submission& submission, const Task& task);

  /// As Judge::judge().
  Verdict judge();

 private:
  using SecondsOf = double Verdict::*;

  void timed_step(SecondsOf seconds, const std::function<void()>& step);
  void run();
  void compile();
  void check_first_inputs();
  void draw_cases();
  void check();
  void check_on(RemoteDevice& device, const ObjectCode& code);
  void measure();
  void measure_by_counts();
  void measure_on_gpu();
  void compare_with_floor(double value, const char* unit);
  WaitLimits limits() const;

  const JudgeDevices& devices_;
  const Submission& submission_;
  const Task& task_;
  Verdict verdict_;
  JudgedText kernel_;
  std::optional<JudgedText> baseline_;
  std::vector<CaseRef> cases_;
  CaseRef small_;  ///< the smallest of those with elements
  int timed_number_ = 0;
  ContentsPlan plan_;
};

}  // namespace kernwright
