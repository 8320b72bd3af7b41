// The plan of fault drivers: when a call of a decorated table fails, and with which result.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace kernwright {

/// One planned fault. A plain value.
struct FaultPlan {
  /// Whether the fault comes alone, or with every matching call after it.
  enum class Repeat : bool { once, forever };
  /// `before`: the real function is not called. `after`: it is, and only its result is lost, as
  /// when a driver reports with one call an error of an earlier one. A call that creates something
  /// then leaks it, since nobody learns of it.
  enum class Moment : bool { before, after };

  std::string function{};  ///< name in the table; empty: every function counts
  std::uint64_t call = 1;  ///< the matching call that fails, counted from 1 when armed
  int result = 0;          ///< what it returns: a CUresult, or an nvrtcResult
  Repeat repeat = Repeat::once;
  Moment moment = Moment::before;
  bool sticky = false;                ///< the context answers the same to everything from then on
  std::chrono::nanoseconds delay{0};  ///< how long the failing call takes before it returns
};

/// Counts matching calls and says which of them fails. Thread-safe.
class FaultSchedule {
 public:
  void arm(FaultPlan plan);
  void disarm();
  void reset();  ///< as new

  /// Counts a call of `function`; the plan when this call is to fail.
  std::optional<FaultPlan> enter(std::string_view function);

  std::uint64_t fired() const;        ///< faults since arm()
  std::string last_function() const;  ///< of the newest fault; empty without one
  /// Every function that failed since reset(), whatever was armed.
  std::set<std::string> failed_functions() const;

 private:
  mutable std::mutex mutex_;
  std::optional<FaultPlan> plan_;
  std::uint64_t seen_ = 0;
  std::uint64_t fired_ = 0;
  std::string last_;
  std::set<std::string> failed_;
};

}  // namespace kernwright
