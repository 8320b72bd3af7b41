// A decorator over a driver table that makes chosen calls fail.
#pragma once

#include "driver/driver_api.h"
#include "driver/fault_plan.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace kernwright {

/// Counts every call and fails the one named by a plan. With no plan armed, the decorated table
/// does the work of the inner one. Put it over a RecordingDriver to see that a fault leaves nothing
/// behind, and into a DeviceRegistry or Runtime::override_cuda() to run the library on it.
///
/// One may exist at a time, as the table's functions have no place for an instance; after its
/// destruction they call the inner table's. Thread-safe, apart from construction and destruction.
class FaultDriver {
 public:
  /// Throws Error when there is another one. `inner` is copied.
  explicit FaultDriver(const DriverApi& inner);
  ~FaultDriver();
  FaultDriver(const FaultDriver&) = delete;
  FaultDriver& operator=(const FaultDriver&) = delete;

  /// The decorated table. Valid for the life of the process.
  const DriverApi& api() const noexcept;

  /// From now on calls are counted against `plan`, in place of the earlier one. A sticky plan
  /// breaks the context that is current when it fires. Each later call in that context returns the
  /// same result, undone, except calls to ask for or select devices and contexts.
  /// cuDevicePrimaryCtxReset makes the device's context whole again. Throws NameNotFound for a
  /// function missing in driver_api.def.
  void arm(const FaultPlan& plan);
  /// No more faults, and contexts broken by a sticky one are whole again.
  void disarm();

  std::uint64_t fired() const;        ///< faults since arm(), without what a broken context refused
  std::string last_function() const;  ///< of the newest fault since arm()
  /// Names of all functions that failed since construction.
  std::set<std::string> failed_functions() const;

  /// How often the function was called since construction. Throws NameNotFound.
  std::uint64_t calls(std::string_view name) const;
  std::uint64_t calls() const noexcept;  ///< of all functions

  /// Called with the name of each function before it does anything, on the calling thread; null for
  /// none. It may not call the driver.
  void observe(void (*observer)(const char* name)) noexcept;
};

}  // namespace kernwright
