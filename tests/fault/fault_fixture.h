// The library over FaultDriver over RecordingDriver over the simulated device, and the loop over
// its calls: each fails once.
#pragma once

#include "core/device.h"
#include "core/device_registry.h"
#include "core/kernel.h"
#include "driver/fault_driver.h"
#include "driver/recording_driver.h"

#include <functional>
#include <set>
#include <stdexcept>
#include <string>

namespace kernwright::testing {

/// The fault driver of the process. Its table is the one behind all devices below.
FaultDriver& faults();
/// The decorator between it and the simulated device: it records the calls that arrive.
RecordingDriver& recorder();

/// Devices over the faulty table, made anew: no error is latched, no value cached. Kept for the
/// life of the process because devices are. As GPUs: errors have the meaning of a GPU's. As
/// simulated devices: programs are compiled for them.
enum class Seen : bool { as_gpu, as_simulated };
DeviceRegistry& new_registry(Seen seen);

/// Puts the process-wide Runtime on the same table, for calls of the library about its devices.
/// Called by run_under().
void prepare_runtime();

/// Devices made from now on use `table`. It calls faults().api() in the end.
void put_in_front(const DriverApi& table);

/// A wrong result is no fault of the driver: it ends the loop as a failure of the test.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// A use of the library: it checks its own results, and frees all its objects.
struct Scenario {
  std::string name;
  Seen seen;
  std::function<void(DeviceRegistry&)> run;
  /// Functions with failures handled by the library in this scenario, beside may_pass().
  std::set<std::string> absorbed = {};
};

/// A scenario on the first device of the registry.
Scenario on_device(std::string name, Seen seen, std::function<void(Device&)> run,
                   std::set<std::string> absorbed = {});

std::vector<Scenario> core_scenarios();
std::vector<Scenario> memory_scenarios();
std::vector<Scenario> jit_scenarios();
std::vector<Scenario> schedule_scenarios();
std::vector<Scenario> all_scenarios();

/// The outcome of one run of a scenario under a plan.
struct Outcome {
  std::uint64_t fired = 0;
  std::string function;  ///< the last failed one
  bool threw = false;
  bool threw_error = false;  ///< something of the library's own types
  bool was_lost = false;     ///< DeviceLost
  bool was_memory = false;   ///< OutOfMemory
  int code = 0;              ///< of a DriverError
  std::string message;
  std::string left;  ///< findings of the recorder: errors, and objects left over
  int left_count = 0;
  bool context_restored = true;
};

/// Gives the cached memory of the devices' pools back.
void empty_pools(DeviceRegistry& registry);

/// Runs the scenario on new devices with the plan armed, while `caller` is current.
Outcome run_under(const Scenario& scenario, const FaultPlan& plan, CUcontext caller);

/// Whether a failure of the function may pass without an exception: it happens in a destructor and
/// is logged, or its result is only for a better message.
bool may_pass(const Scenario& scenario, const std::string& function);
/// Whether a failure of the function may leave something behind: objects that the driver refused to
/// destroy, that destructors could not reach, or that may still be in use.
bool may_leave(const Scenario& scenario, const std::string& function);

/// The kernel of unit/core/saxpy.h.
Kernel load_saxpy(Device& device);

CUcontext current_context();

}  // namespace kernwright::testing
