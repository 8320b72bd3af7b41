// How much a session may spend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kernwright {

/// One budget for compiling and measuring. A session ends at the first reached limit; without any
/// limit it tries the whole space.
struct Budget {
  std::optional<double> seconds{};             ///< of wall time, from the start of this session
  std::optional<std::uint64_t> evaluations{};  ///< trials, failures and resumed ones included
  std::optional<double> gpu_seconds{};         ///< working time of devices
  std::optional<double> target{};              ///< a sufficient score

  /// Throws InvalidArgument for a limit that is zero, negative or not a number.
  void validate() const;
};

/// The spent part of a budget.
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
  cancelled,  ///< stopped by the caller
};

/// "complete", "budget", "target", "cancelled": the member `reason` of a result.
const char* session_end_name(SessionEnd end) noexcept;

/// Whether running trials should be given up; `evaluations` do not count here.
std::optional<SessionEnd> reached_limit(const Budget& budget, const Spending& spent);

}  // namespace kernwright
