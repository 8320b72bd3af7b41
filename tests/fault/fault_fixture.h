// The library over FaultDriver over RecordingDriver over the simulated device, and the loop that
// fails its calls one by one.
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
/// What stands between it and the simulated device: sees what was really done.
RecordingDriver& recorder();

/// Devices over the faulty table, made anew so that nothing is latched or cached; kept for the life
/// of the process because devices are. As GPUs: errors mean what they mean on a GPU. As simulated
/// devices: programs are compiled for them.
enum class Seen : bool { as_gpu, as_simulated };
DeviceRegistry& new_registry(Seen seen);

/// Puts the process-wide Runtime on the same table, for what asks it which devices there are.
/// Called by run_under().
void prepare_runtime();

/// Makes devices made from now on see `table`, which calls faults().api() in the end.
void put_in_front(const DriverApi& table);

/// A wrong result is no fault of the driver: it ends the loop as a failure of the test.
inline void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// A use of the library that checks its own results, and frees all that it makes.
struct Scenario {
  std::string name;
  Seen seen;
  std::function<void(DeviceRegistry&)> run;
  /// Functions whose failure the library makes good for in this scenario, beside may_pass().
  std::set<std::string> absorbed = {};
};

/// A scenario on the first device of the registry.
Scenario on_device(std::string name, Seen seen, std::function<void(Device&)> run,
                   std::set<std::string> absorbed = {});

std::vector<Scenario> core_scenarios();
std::vector<Scenario> memory_scenarios();
std::vector<Scenario> jit_scenarios();
std::vector<Scenario> all_scenarios();

/// What one run of a scenario under a plan came to.
struct Outcome {
  std::uint64_t fired = 0;
  std::string function;  ///< the last that failed
  bool threw = false;
  bool threw_error = false;  ///< something of the library's own types
  bool was_lost = false;     ///< DeviceLost
  bool was_memory = false;   ///< OutOfMemory
  int code = 0;              ///< of a DriverError
  std::string message;
  std::string left;  ///< lines of of what the recorder found wrong or left behind
  int left_count = 0;
  bool context_restored = true;
};

/// Gives back what the pools of the devices keep for reuse.
void empty_pools(DeviceRegistry& registry);

/// Runs the scenario on new devices with the plan armed, while `caller` is current.
Outcome run_under(const Scenario& scenario, const FaultPlan& plan, CUcontext caller);

/// Whether a failure of the function may pass without an exception: it happens in a destructor,
/// which logs it, or what it asks for only makes a message better.
bool may_pass(const Scenario& scenario, const std::string& function);
/// Whether a failure of the function may leave something behind: what the driver refused to
/// destroy, destructors could not reach, or somebody may still use for all that is known.
bool may_leave(const Scenario& scenario, const std::string& function);

/// The kernel of unit/core/saxpy.h.
Kernel load_saxpy(Device& device);

CUcontext current_context();

}  // namespace kernwright::testing
