// Driver functions for kernel launches.
#include "sim/device/launch/launch.h"

#include "base/format.h"
#include "base/hash.h"
#include "base/log.h"
#include "sim/device/launch/grid.h"
#include "sim/device/launch/print.h"
#include "sim/device/launch/thread_pool.h"
#include "sim/device/module/function.h"
#include "sim/device/sim_driver.h"
#include "sim/exec/block/stop_request.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

namespace kernwright::sim {
namespace {

/// The error code of a finding on a GPU.
CUresult fault_result(FaultKind kind) {
  switch (kind) {
    case FaultKind::bounds:
    case FaultKind::use_after_free: return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::alignment: return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::assertion: return CUDA_ERROR_ASSERT;
    case FaultKind::timeout: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case FaultKind::interrupted: return CUDA_ERROR_TIMEOUT;  // which leaves a context usable
    default: return CUDA_ERROR_LAUNCH_FAILED;
  }
}

void check_shape(const Function& function, const FunctionInfo& info, const LaunchCall& launch) {
  const DeviceProfile& profile = device_profile();
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto most_threads =
        profile.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + static_cast<int>(axis));
    const auto most_blocks =
        profile.attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + static_cast<int>(axis));
    require(launch.block[axis] != 0 &&
            launch.block[axis] <= static_cast<std::uint32_t>(most_threads.value_or(1)));
    require(launch.grid[axis] != 0 &&
            launch.grid[axis] <= static_cast<std::uint32_t>(most_blocks.value_or(1)));
    const std::uint32_t required_threads = info.required_threads[axis];
    require(required_threads == 0 || launch.block[axis] == required_threads);
  }
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  require(threads <=
          static_cast<std::uint64_t>(profile.required(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)));
  require(info.max_threads == 0 || threads <= info.max_threads);
  require(static_cast<int>(threads) <= max_block_threads(function),
          CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  require(launch.shared_bytes <= static_cast<std::uint32_t>(function.max_dynamic_shared.load()));
}

constexpr std::uint64_t kPortableClusterBlocks = 8, kLargestClusterBlocks = 16;

/// Blocks of a cluster: the function's own where it names them, else the launch's.
std::array<std::uint32_t, 3> cluster_extents(const Function& function, const FunctionInfo& info,
                                             const LaunchCall& launch) {
  constexpr std::array<std::uint32_t, 3> kNone{};
  std::array<std::uint32_t, 3> cluster = launch.cluster;
  if (info.required_cluster != kNone) {
    require(cluster == kNone || cluster == info.required_cluster, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    cluster = info.required_cluster;
  }
  if (cluster == kNone) {
    require(!info.explicit_cluster, CUDA_ERROR_INVALID_CLUSTER_SIZE);
    return cluster;
  }
  const std::uint64_t blocks = std::uint64_t{cluster[0]} * cluster[1] * cluster[2];
  require(device_profile().required(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0 || blocks == 1,
          CUDA_ERROR_INVALID_CLUSTER_SIZE);
  require(blocks != 0 &&
              blocks <= (function.large_clusters ? kLargestClusterBlocks : kPortableClusterBlocks),
          CUDA_ERROR_INVALID_CLUSTER_SIZE);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    require(launch.grid[axis] % cluster[axis] == 0, CUDA_ERROR_INVALID_VALUE);
  }
  return cluster;
}

/// The parameter block of CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE.
std::vector<std::byte> from_extra(const FunctionInfo& info, void** extra) {
  const void* buffer = nullptr;
  const std::size_t* size = nullptr;
  for (void** entry = extra; *entry != kLaunchParamEnd; entry += 2) {
    if (*entry == kLaunchParamBufferPointer) {
      buffer = entry[1];
    } else if (*entry == kLaunchParamBufferSize) {
      size = static_cast<const std::size_t*>(entry[1]);
    } else {
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  }
  require(buffer != nullptr && size != nullptr && *size >= info.parameter_bytes);
  const auto* const begin = static_cast<const std::byte*>(buffer);
  return {begin, begin + info.parameter_bytes};
}

std::vector<std::byte> pack_parameters(const FunctionInfo& info, const LaunchCall& launch) {
  require(launch.parameters == nullptr || launch.extra == nullptr);
  if (launch.extra != nullptr) return from_extra(info, launch.extra);
  std::vector<std::byte> block(info.parameter_bytes);
  require(info.parameters.empty() || launch.parameters != nullptr);
  for (std::size_t i = 0; i < info.parameters.size(); ++i) {
    const ParameterSlot& slot = info.parameters[i];
    require(launch.parameters[i] != nullptr);
    std::memcpy(block.data() + slot.offset, launch.parameters[i], slot.bytes);
  }
  return block;
}

/// The number of blocks resident at a time on the device, or on those of a green context.
std::uint64_t residents(const Function& function, const std::array<std::uint32_t, 3>& block,
                        std::size_t shared_bytes, const GreenContext* green) {
  const int threads = static_cast<int>(block[0] * block[1] * block[2]);
  return static_cast<std::uint64_t>(resident_blocks(function, threads, shared_bytes)) *
         static_cast<std::uint64_t>(processor_count(green));
}

/// A cooperative grid must be resident as a whole, cluster by cluster.
void check_resident(const Function& function, const LaunchCall& launch,
                    const std::array<std::uint32_t, 3>& cluster) {
  const std::uint64_t fitting =
      residents(function, launch.block, launch.shared_bytes, launch.green.get());
  const std::uint64_t blocks = std::uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const std::uint64_t together =
      std::max<std::uint64_t>(std::uint64_t{cluster[0]} * cluster[1] * cluster[2], 1);
  require(blocks <= fitting / together * together, CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

std::atomic<bool (*)()> interrupt_check = nullptr;
std::atomic<int (*)(std::string_view, std::string_view)> text_places = nullptr;
std::atomic<std::string (*)(std::uint64_t, const std::string&, int)> text_lines = nullptr;

/// Puts the line of the source below the message.
void show_line(Fault& fault, std::uint64_t code) {
  auto* const get_line = text_lines.load();
  if (get_line == nullptr || fault.line <= 0) return;
  const std::string line = get_line(code, fault.file, fault.line);
  if (!line.empty()) fault.message += "\n    " + line;
}

void log_finding(Finding finding) {
  if (auto* const first_line = text_places.load(); first_line != nullptr) {
    const auto file_line = [&](const std::string& file) {
      return first_line(finding.fault.kernel, file);
    };
    finding.fault.place_texts(file_line);
    if (finding.other) finding.other->first_line = file_line(finding.other->file);
  }
  show_line(finding.fault, finding.code);
  log(LogLevel::warning, "simulated device: {}", finding.to_string());
}

LaunchContext request_for(const KernelWork& work, const Module& module, AccessLog* log) {
  Context& context = *module.context;
  LaunchContext request;
  request.program = &module.code->program();
  request.function = work.function->index;
  request.grid = work.grid;
  request.block = work.block;
  request.cluster = work.cluster;
  // Only for code with possible bulk copies, so that other launches keep their choices.
  const bool has_copies = request.program->module->target.starts_with("sm_9");
  if (has_copies && sim_driver().queues.deferred())
    request.copy_seed = sim_driver().queues.draw() | 1;
  request.dynamic_shared_bytes = work.shared_bytes;
  request.parameters = work.parameters.data();
  request.parameter_bytes = static_cast<std::uint32_t>(work.parameters.size());
  request.memory = &context.device.memory;
  request.instruction_budget = sim_driver().instruction_budget;
  request.heap = &context.heap;
  request.grid_id = sim_driver().next_id();
  static const auto processors = static_cast<std::uint32_t>(
      device_profile().required(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  static const auto slots = static_cast<std::uint32_t>(device_profile().required(
                                CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)) /
                            32;
  request.sm_count = processors;
  request.warp_slots = slots;
  request.residents = residents(*work.function, work.block, work.shared_bytes, work.green.get());
  request.accesses = log;
  request.textures = &sim_driver().textures;
  return request;
}

/// Findings of a launch go to the scopes collecting them; the others come back.
std::vector<Finding> deliver(const Module& module, std::vector<Finding>&& findings) {
  const std::string_view text = module.code->program().module->text;
  for (Finding& finding : findings) finding.code = code_id(text);
  return sim_driver().checks.deliver(std::move(findings));
}

/// Different in each launch, and unknown to its kernel.
std::uint64_t leftover_seed() {
  static const std::uint64_t process_seed = std::random_device()();
  static std::atomic<std::uint64_t> launches = 0;
  return splitmix_at(process_seed, ++launches) | 1;
}

/// `unclaimed` takes findings of checks not collected by any scope.
GridResult execute(const KernelWork& work, const Module& module, AccessLog* log,
                   std::vector<Finding>& unclaimed) {
  LaunchContext request = request_for(work, module, log);
  const std::lock_guard execution(sim_driver().execution);
  StopRequest stop(interrupt_check, sim_driver().launch_limit);
  request.stop = &stop;
  Checks& checks = sim_driver().checks;
  Observation& observation = sim_driver().observation;
  const Observation::Wanted wanted = observation.begin(work.handle, request);
  const int width = wanted.trace || checks.in_schedule() ? 1 : sim_driver().threads;
  std::optional<CheckedLaunch> checked;
  std::optional<ObservedLaunch> watched;
  const std::uint64_t seed = checks.next_seed();
  if (checks.init()) request.register_seed = leftover_seed();
  request.place_seed = seed != 0 ? seed : request.register_seed;
  if (checks.current().any() || seed != 0) {
    const CheckedProgram& program =
        module.code->checked(wanted.any() ? CodeForm::as_written : CodeForm::fast);
    checked.emplace(program, checks.current(), checks.shadow, checks.ticks(), seed, width);
    request.program = &program.program;
    request.checks = &*checked;
  }
  if (wanted.any()) {
    const ObservedProgram& program = module.code->observed(checked.has_value());
    watched.emplace(program, wanted.trace ? observation.trace : nullptr, wanted.counts);
    request.program = &program.program;
    request.observed = &*watched;
  }
  std::span<const std::uint32_t> processors;
  if (work.green != nullptr) processors = work.green->processors;
  GridResult result = work.cooperative ? run_cooperative_grid(request, width, processors)
                      : seed != 0      ? run_scheduled_grid(request, seed, false, processors)
                                       : run_grid(request, width, processors);
  if (watched)
    observation.end(wanted, *watched, request.function, result.fault ? &*result.fault : nullptr);
  module.context->device.memory.reclaim();
  if (checked) unclaimed = deliver(module, checked->take());
  if (result.fault && result.fault->kind != FaultKind::interrupted) {
    std::vector<Finding> stopped(1);
    stopped[0].fault = *result.fault;
    deliver(module, std::move(stopped));
  }
  return result;
}

}  // namespace

void set_interrupt_check(bool (*is_interrupted)()) noexcept { interrupt_check = is_interrupted; }
void set_text_places(int (*first_line)(std::string_view, std::string_view)) noexcept {
  text_places = first_line;
}
void set_text_lines(std::string (*get_line)(std::uint64_t, const std::string&, int)) noexcept {
  text_lines = get_line;
}

namespace {

/// Memory of another device is out of bounds like any other; the message says so.
void explain_foreign_memory(Fault& fault, const SimDevice& local) {
  if (fault.kind != FaultKind::bounds) return;
  for (const auto& device : sim_driver().devices) {
    if (device.get() == &local || device->memory.search(fault.address).end == 0) continue;
    fault.message = format("{}: it is memory of device {}, to which device {} has no peer access",
                           fault.message, device->ordinal, local.ordinal);
    fault.allocation = device->memory.describe(fault.address, fault.access_size);
    fault.details = "enable it with cuCtxEnablePeerAccess, or copy the memory";
  }
}

}  // namespace

const CUlaunchAttributeValue* last_attribute(const CUlaunchConfig& config, CUlaunchAttributeID id) {
  for (unsigned i = config.numAttrs; i-- > 0;) {
    if (config.attrs[i].id == id) return &config.attrs[i].value;
  }
  return nullptr;
}

KernelWork prepare(const LaunchCall& launch, const Context& context) {
  KernelWork work;
  work.handle = launch.function;
  work.green = launch.green;
  work.function = find_function(launch.function);
  work.module = work.function->module.lock();
  require(work.module != nullptr && work.module->context->id == context.id,
          CUDA_ERROR_INVALID_HANDLE);
  const FunctionInfo& info = work.module->code->program().functions[work.function->index];
  check_shape(*work.function, info, launch);
  work.parameters = pack_parameters(info, launch);
  work.grid = launch.grid;
  work.block = launch.block;
  work.cluster = cluster_extents(*work.function, info, launch);
  if (launch.cooperative) check_resident(*work.function, launch, work.cluster);
  work.shared_bytes = launch.shared_bytes;
  work.cooperative = launch.cooperative;
  return work;
}

void perform(const KernelWork& work, AccessLog* log) {
  require(work.green == nullptr || !work.green->destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const auto module = work.module != nullptr ? work.module : work.function->module.lock();
  if (module == nullptr) {
    fail_call(CUDA_ERROR_INVALID_HANDLE, FaultKind::use_after_free,
              "the module of kernel " + work.function->name + " was unloaded before it ran");
  }
  std::vector<Finding> unclaimed;
  GridResult result = execute(work, *module, log, unclaimed);
  for (Finding& finding : unclaimed) log_finding(std::move(finding));
  deliver_print(result.printed);
  if (!result.fault) return;
  if (result.fault->kernel.empty()) result.fault->kernel = work.function->name;
  explain_foreign_memory(*result.fault, module->context->device);
  show_line(*result.fault, code_id(module->code->program().module->text));
  const CUresult code = fault_result(result.fault->kind);
  throw Failure{code, std::move(*result.fault)};
}

namespace {

/// NOTE: the event of an attribute must not keep time (CUlaunchAttributeID's reference).
void check_event(CUevent handle) {
  if (handle == nullptr) return;
  const auto event = sim_driver().events.find(handle);
  require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  require((event->flags & CU_EVENT_DISABLE_TIMING) != 0);
}

/// Attributes about a launch's scheduling make no difference here; unsupported ones are refused.
void check_attributes(const CUlaunchConfig& config) {
  require(config.numAttrs == 0 || config.attrs != nullptr);
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        require(value.clusterDim.x != 0 && value.clusterDim.y != 0 && value.clusterDim.z != 0,
                CUDA_ERROR_INVALID_CLUSTER_SIZE);
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        require(value.deviceUpdatableKernelNode.deviceUpdatable == 0, CUDA_ERROR_NOT_SUPPORTED);
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        check_event(value.programmaticEvent.event);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        check_event(value.launchCompletionEvent.event);
        break;
      default:
        require(config.attrs[i].id >= CU_LAUNCH_ATTRIBUTE_IGNORE &&
                config.attrs[i].id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
    }
  }
}

/// Zeros without a cluster.
std::array<std::uint32_t, 3> cluster_extents(const CUlaunchConfig& config) {
  const auto* const value = last_attribute(config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  if (value == nullptr) return {};
  return {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
}

/// Both kinds of event are reached at the kernel's end, which is never too early.
void record_events(const CUlaunchConfig& config, const StreamUse& use) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      record_event(value.programmaticEvent.event, use);
    }
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      record_event(value.launchCompletionEvent.event, use);
    }
  }
}

}  // namespace

void calls::cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                           unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                           void** parameters, void** extra) {
  const StreamUse use = use_stream(stream);
  submit(use, prepare({function,
                       {grid_x, grid_y, grid_z},
                       {block_x, block_y, block_z},
                       shared_bytes,
                       parameters,
                       extra,
                       false,
                       {},
                       use.stream->green},
                      *use.context));
}

void calls::cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                             void** extra) {
  require(config != nullptr);
  check_attributes(*config);
  const auto* const cooperative = last_attribute(*config, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  const StreamUse use = use_stream(config->hStream);
  submit(use, prepare({function,
                       {config->gridDimX, config->gridDimY, config->gridDimZ},
                       {config->blockDimX, config->blockDimY, config->blockDimZ},
                       config->sharedMemBytes,
                       parameters,
                       extra,
                       cooperative != nullptr && cooperative->cooperative != 0,
                       cluster_extents(*config),
                       use.stream->green},
                      *use.context));
  record_events(*config, use);
}

}  // namespace kernwright::sim
