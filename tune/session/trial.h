// A session's knowledge about one tried configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kernwright {

/// How a trial ended, in the words of Kernel Tuner's T4 format.
enum class TrialStatus : std::uint8_t {
  correct,      ///< measured; its outputs are right where they were checked
  correctness,  ///< an output is wrong
  compile,      ///< the compiler refused the text
  runtime,      ///< a launch failed: an illegal access, a crash, no memory
  timeout,      ///< the compile or a launch took too long
  constraints,  ///< refused before it ran: limits of the device, an impossible launch
};

/// "correct", "correctness", "compile", "runtime", "timeout", "constraints".
std::string_view trial_status_name(TrialStatus status) noexcept;
/// Nothing for another word.
std::optional<TrialStatus> find_trial_status(std::string_view name) noexcept;

struct KernelResources {
  int registers = 0;             ///< of a thread
  std::size_t shared_bytes = 0;  ///< of a block, static
  std::size_t local_bytes = 0;   ///< of a thread
};

/// Moments are seconds since the session began.
struct Trial {
  std::uint64_t number = 0;  ///< 0, 1, ... in the session's order of asking
  std::uint64_t index = 0;   ///< of the configuration in the space
  TrialStatus status = TrialStatus::correct;
  std::string error{};  ///< why it failed; empty for a correct one

  std::vector<double> times_ms{};  ///< single samples; empty where nothing was measured
  std::optional<double> median_ms{};
  std::optional<std::pair<double, double>> interval_ms{};  ///< of the median, 95 %
  std::map<std::string, double> metrics{};
  std::optional<double> score{};  ///< minimised by the search; nothing for a failure

  double compile_s = 0;  ///< spent by the compiler; 0 where a cache had the code
  double verify_s = 0;
  double measure_s = 0;
  double started_s = 0;
  double compile_started_s = 0;
  double compile_ended_s = 0;
  double ended_s = 0;

  std::string code{};  ///< hash of the object code; empty where there is none
  KernelResources resources{};
  std::optional<std::uint64_t> same_as{};  ///< the trial with the same code; its result is this one
  bool is_resumed = false;                 ///< the result comes from an earlier session
  /// Tried while another trial delayed the search: not asked by the search, at first.
  bool is_extra = false;

  /// The outcome of `leader`: it ran the same code in the same way.
  void adopt(const Trial& leader);

  bool is_correct() const { return status == TrialStatus::correct; }
  double gpu_s() const { return verify_s + measure_s; }
};

}  // namespace kernwright
