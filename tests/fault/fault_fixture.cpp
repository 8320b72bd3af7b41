// One fault driver for the process, and the outcome of a run under a plan.
#include "fault/fault_fixture.h"

#include "base/errors.h"
#include "core/module.h"
#include "core/runtime.h"
#include "memory/memory_resource.h"
#include "memory/pinned_resource.h"
#include "sim/device.h"
#include "unit/core/saxpy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace kernwright::testing {
namespace {

/// Four devices: some stay whole beside the failing one. They have most of the driver's functions.
const bool is_set = setenv("KERNWRIGHT_SIM_DEVICES", "4", 1) == 0 &&
                    setenv("KERNWRIGHT_SIM_CAPABILITY", "9.0", 1) == 0;

const DriverApi* front = nullptr;

const DriverApi& faulty_table() { return front != nullptr ? *front : faults().api(); }

}  // namespace

RecordingDriver& recorder() {
  static auto* const instance = new RecordingDriver(sim::driver_api());
  return *instance;
}

FaultDriver& faults() {
  static auto* const instance = new FaultDriver(recorder().api());
  return *instance;
}

DeviceRegistry& new_registry(Seen seen) {
  static auto* const kept = new std::vector<std::unique_ptr<DeviceRegistry>>;
  DeviceRegistry::Options options;
  if (seen == Seen::as_gpu) {
    options.cuda = &faulty_table();
    options.wanted = "cuda";
  } else {
    options.sim = &faulty_table;
    options.wanted = "sim";
  }
  if (seen == Seen::as_gpu) {
    const CUresult result = faulty_table().cuInit(0);
    if (result != CUDA_SUCCESS) throw DriverError("cuInit failed", result, "");
  }
  kept->push_back(std::make_unique<DeviceRegistry>(std::move(options)));
  return *kept->back();
}

void prepare_runtime() {
  static const bool is_ready = [] {
    setenv("KERNWRIGHT_DEVICE", "cuda", 1);
    Runtime::override_cuda(&faults().api());
    return !Runtime::get().devices().empty();
  }();
  REQUIRE(is_ready);
}

void put_in_front(const DriverApi& table) { front = &table; }

Scenario on_device(std::string name, Seen seen, std::function<void(Device&)> run,
                   std::set<std::string> absorbed) {
  return {std::move(name), seen,
          [run = std::move(run)](DeviceRegistry& registry) { run(registry.by_index(0)); },
          std::move(absorbed)};
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all = core_scenarios();
  for (auto more : {memory_scenarios(), jit_scenarios(), schedule_scenarios()}) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  sim::driver_api().cuCtxGetCurrent(&context);
  return context;
}

void empty_pools(DeviceRegistry& registry) {
  for (const int index : {0, 2}) {  // scenarios allocate on these
    Device& device = registry.by_index(index);
    if (device.lost()) continue;
    default_resource(device)->trim();
    if (index == 0) pinned_resource(device)->trim();
  }
}

Outcome run_under(const Scenario& scenario, const FaultPlan& plan, CUcontext caller) {
  prepare_runtime();
  const DriverApi& unwatched = sim::driver_api();
  unwatched.cuCtxSetCurrent(caller);
  recorder().reset();
  Outcome outcome;
  DeviceRegistry* registry = nullptr;
  faults().arm(plan);
  try {
    registry = &new_registry(scenario.seen);
    scenario.run(*registry);
  } catch (const DriverError& error) {
    outcome.threw = outcome.threw_error = true;
    outcome.was_lost = dynamic_cast<const DeviceLost*>(&error) != nullptr;
    outcome.code = error.code;
    outcome.message = error.what();
  } catch (const Error& error) {
    outcome.threw = outcome.threw_error = true;
    outcome.was_memory = dynamic_cast<const OutOfMemory*>(&error) != nullptr;
    outcome.message = error.what();
  } catch (const std::exception& error) {
    outcome.threw = true;
    outcome.message = error.what();
  }
  outcome.fired = faults().fired();
  outcome.function = faults().last_function();
  faults().disarm();
  outcome.context_restored = current_context() == caller;
  if (registry != nullptr) empty_pools(*registry);
  for (const std::string& line : recorder().check()) {
    if (line.find("primary context") != std::string::npos) continue;  // devices keep theirs
    outcome.left += line + "\n";
    ++outcome.left_count;
  }
  unwatched.cuCtxSetCurrent(nullptr);
  if (outcome.left_count > 0 || plan.repeat == FaultPlan::Repeat::forever) {
    // The next run must not find objects that could not be ended or freed, such as a capture.
    for (CUdevice device = 0; device < 4; ++device) unwatched.cuDevicePrimaryCtxReset(device);
  }
  return outcome;
}

bool may_pass(const Scenario& scenario, const std::string& function) {
  static const std::set<std::string> passing = {
      // In destructors: they log errors of the driver.
      "cuStreamDestroy", "cuEventDestroy", "cuModuleUnload", "cuMemFree", "cuMemFreeAsync",
      "cuMemFreeHost", "cuGraphDestroy", "cuGraphExecDestroy", "cuMemPoolDestroy", "cuArrayDestroy",
      "cuTexObjectDestroy", "cuSurfObjectDestroy", "cuGreenCtxDestroy", "cuCtxGetCurrent",
      "cuCtxSetCurrent",
      // Only asked for to say more in a message.
      "cuGetErrorString", "cuGetErrorName", "cuModuleGetFunctionCount",
      "cuModuleEnumerateFunctions", "cuFuncGetName", "cuMemPoolGetAttribute", "cuMemGetInfo",
      "kwTakeReport",
      // Whether a capture is in progress: without an answer, the call itself fails.
      "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode", "cuStreamGetCaptureInfo",
      // The simulated device then estimates the kernels' resources itself.
      "kwSetModuleResources"};
  return passing.contains(function) || scenario.absorbed.contains(function);
}

bool may_leave(const Scenario& scenario, const std::string& function) {
  static const std::set<std::string> leaving = {
      "cuStreamDestroy",   "cuEventDestroy",  "cuModuleUnload",     "cuMemFree",
      "cuMemFreeAsync",    "cuMemFreeHost",   "cuGraphDestroy",     "cuGraphExecDestroy",
      "cuMemPoolDestroy",  "cuArrayDestroy",  "cuTexObjectDestroy", "cuSurfObjectDestroy",
      "cuGreenCtxDestroy", "cuCtxGetCurrent", "cuCtxSetCurrent"};
  return leaving.contains(function) || scenario.absorbed.contains(function);
}

Kernel load_saxpy(Device& device) { return {Module::load(device, kSaxpyPtx), saxpy_signature()}; }

}  // namespace kernwright::testing
