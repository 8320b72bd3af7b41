// One fault driver for the process, and what a run under a plan came to.
#include "fault/fault_fixture.h"

#include "base/errors.h"
#include "core/module.h"
#include "core/runtime.h"
#include "memory/memory_resource.h"
#include "memory/pinned_resource.h"
#include "sim/device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

namespace kernwright::testing {
namespace {

/// Four devices, so that there are others beside the one that breaks.
const int four_devices = setenv("KERNWRIGHT_SIM_DEVICES", "4", 1);

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
  for (auto more : {memory_scenarios(), jit_scenarios()}) {
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
  for (const int index : {0, 2}) {  // what scenarios allocate on
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
    // What could not be ended or freed, such as a capture, must not be met by the next run.
    for (CUdevice device = 0; device < 4; ++device) unwatched.cuDevicePrimaryCtxReset(device);
  }
  return outcome;
}

bool may_pass(const Scenario& scenario, const std::string& function) {
  static const std::set<std::string> passing = {
      // In destructors, which log what the driver refuses.
      "cuStreamDestroy", "cuEventDestroy", "cuModuleUnload", "cuMemFree", "cuMemFreeAsync",
      "cuMemFreeHost", "cuGraphDestroy", "cuGraphExecDestroy", "cuMemPoolDestroy",
      "cuCtxGetCurrent", "cuCtxSetCurrent",
      // Only asked for to say more in a message.
      "cuGetErrorString", "cuGetErrorName", "cuModuleGetFunctionCount",
      "cuModuleEnumerateFunctions", "cuFuncGetName", "cuMemPoolGetAttribute", "cuMemGetInfo",
      "kwTakeReport",
      // Whether a capture is under way: without an answer, the call itself meets what is wrong.
      "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode", "cuStreamGetCaptureInfo",
      // The simulated device then estimates the kernels' resources itself.
      "kwSetResourceImage"};
  return passing.contains(function) || scenario.absorbed.contains(function);
}

bool may_leave(const Scenario& scenario, const std::string& function) {
  static const std::set<std::string> leaving = {
      "cuStreamDestroy",  "cuEventDestroy",  "cuModuleUnload", "cuMemFree",
      "cuMemFreeAsync",   "cuMemFreeHost",   "cuGraphDestroy", "cuGraphExecDestroy",
      "cuMemPoolDestroy", "cuCtxGetCurrent", "cuCtxSetCurrent"};
  return leaving.contains(function) || scenario.absorbed.contains(function);
}

const char* saxpy_ptx() noexcept {
  return R"(
.version 7.0
.target sm_80
.address_size 64

.visible .global .align 4 .b8 counters[64];

.visible .entry saxpy(
	.param .f32 saxpy_param_0,
	.param .u64 saxpy_param_1,
	.param .u64 saxpy_param_2,
	.param .u32 saxpy_param_3
)
{
	.reg .pred %p<2>;
	.reg .f32 %f<5>;
	.reg .b32 %r<6>;
	.reg .b64 %rd<8>;

	ld.param.f32 %f1, [saxpy_param_0];
	ld.param.u64 %rd1, [saxpy_param_1];
	ld.param.u64 %rd2, [saxpy_param_2];
	ld.param.u32 %r2, [saxpy_param_3];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r3, %r4, %r5;
	setp.ge.s32 %p1, %r1, %r2;
	@%p1 bra $done;
	cvta.to.global.u64 %rd3, %rd1;
	cvta.to.global.u64 %rd4, %rd2;
	mul.wide.s32 %rd5, %r1, 4;
	add.s64 %rd6, %rd3, %rd5;
	add.s64 %rd7, %rd4, %rd5;
	ld.global.f32 %f2, [%rd6];
	ld.global.f32 %f3, [%rd7];
	fma.rn.f32 %f4, %f1, %f2, %f3;
	st.global.f32 [%rd7], %f4;
$done:
	ret;
}
)";
}

Kernel load_saxpy(Device& device) {
  KernelSignature signature{.name = "saxpy", .lowered = "saxpy", .parameters = {}};
  signature.parameters = {
      {.name = "a", .type = "float", .scalar = ScalarType::float32},
      {.name = "x", .type = "const float*", .kind = ParameterKind::pointer},
      {.name = "y", .type = "float*", .kind = ParameterKind::pointer},
      {.name = "n", .type = "int", .scalar = ScalarType::int32},
  };
  return {Module::load(device, saxpy_ptx()), std::move(signature)};
}

}  // namespace kernwright::testing
