// A decorator over NVRTC's table that makes chosen calls fail.
#pragma once

#include "driver/fault_plan.h"
#include "driver/nvrtc_api.h"

#include <cstdint>
#include <set>
#include <string>

namespace kernwright {

/// FaultDriver's twin for NVRTC: `result` of a plan is an nvrtcResult; nothing is sticky.
/// Functions that return a text never fail. One may exist at a time; after its destruction the
/// table's functions call the inner table's. Thread-safe, apart from construction and destruction.
class FaultNvrtc {
 public:
  /// Throws Error when there is another one. `inner` is copied.
  explicit FaultNvrtc(const NvrtcApi& inner);
  ~FaultNvrtc();
  FaultNvrtc(const FaultNvrtc&) = delete;
  FaultNvrtc& operator=(const FaultNvrtc&) = delete;

  /// The decorated table. Valid for the life of the process.
  const NvrtcApi& api() const noexcept;

  /// Throws NameNotFound for a function that is not in nvrtc_api.def.
  void arm(const FaultPlan& plan);
  void disarm();
  std::uint64_t fired() const;
  std::string last_function() const;
  std::set<std::string> failed_functions() const;

  /// Programs that were created and not destroyed.
  std::int64_t live_programs() const noexcept;

 private:
  FaultSchedule& schedule() const noexcept;
};

}  // namespace kernwright
