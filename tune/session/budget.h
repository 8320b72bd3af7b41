// How much a session may spend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

/// One budget for compiling and measuring. A session ends at the first limit that is reached;
/// without any it tries the whole space.
struct Budget {
  std::optional<double> seconds{};             ///< of wall time, from the start of this session
  std::optional<std::uint64_t> evaluations{};  ///< trials, failures and resumed ones included
  std::optional<double> gpu_seconds{};         ///< that devices were at work
  std::optional<double> target{};              ///< a score that is good enough

  /// Throws InvalidArgument for a limit that is zero, negative or no number.
  void validate() const;
};

/// What was spent.
struct Spending {
  double seconds = 0;
  std::uint64_t evaluations = 0;
  double gpu_seconds = 0;
  std::optional<double> best{};
};

/// Why a session ended.
enum class SessionEnd : std::uint8_t {
  complete,   ///< every configuration was tried
  budget,     ///< a limit was reached
  target,     ///< a good enough one was found
  cancelled,  ///< somebody stopped it
};

/// "complete", "budget", "target", "cancelled": the member `reason` of a result.
const char* session_end_name(SessionEnd end) noexcept;

/// Whether trials that began should be given up; `evaluations` do not count here.
std::optional<SessionEnd> reached_limit(const Budget& budget, const Spending& spent);

}  // namespace kernwright
