// Driver functions that launch kernels.
#include "sim/device/function.h"
#include "sim/device/grid.h"
#include "sim/device/platform.h"
#include "sim/device/print.h"
#include "sim/device/thread_pool.h"

#include <chrono>
#include <cstring>

namespace kernwright::sim {
namespace {

struct Launch {
  CUfunction function = nullptr;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t shared_bytes = 0;
  CUstream stream = nullptr;
  void** parameters = nullptr;
  void** extra = nullptr;
};

/// The code that a finding has on a GPU.
CUresult result_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::bounds:
    case FaultKind::use_after_free:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case FaultKind::alignment:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case FaultKind::assertion:
      return CUDA_ERROR_ASSERT;
    case FaultKind::timeout:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

void check_shape(const Function& function, const FunctionInfo& info, const Launch& launch) {
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

/// The parameter block that CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE describe.
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

std::vector<std::byte> pack_parameters(const FunctionInfo& info, const Launch& launch) {
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

GridResult execute(const Function& function, const Module& module, const Launch& launch,
                   const std::vector<std::byte>& parameters) {
  Context& context = *module.context;
  LaunchContext request;
  request.program = &module.code->program();
  request.function = function.index;
  request.grid = launch.grid;
  request.block = launch.block;
  request.dynamic_shared_bytes = launch.shared_bytes;
  request.parameters = parameters.data();
  request.parameter_bytes = static_cast<std::uint32_t>(parameters.size());
  request.memory = &context.device.memory;
  request.instruction_budget = platform().instruction_budget;
  request.heap = &context.heap;
  request.grid_id = platform().next_id();
  const std::lock_guard execution(platform().execution);
  GridResult result = run_grid(request, platform().threads);
  context.device.memory.reclaim();
  return result;
}

void run(const Launch& launch) {
  const auto context = context_of(launch.stream);
  const auto function = find_function(launch.function);
  const auto module = function->module.lock();
  require(module != nullptr && module->context->id == context->id, CUDA_ERROR_INVALID_HANDLE);
  const FunctionInfo& info = module->code->program().functions[function->index];
  check_shape(*function, info, launch);
  const std::vector<std::byte> parameters = pack_parameters(info, launch);
  GridResult result = execute(*function, *module, launch, parameters);
  deliver_print(result.printed);
  if (!result.fault) return;
  if (result.fault->kernel.empty()) result.fault->kernel = function->name;
  const CUresult code = result_of(result.fault->kind);
  throw Failure{code, std::move(*result.fault)};
}

CUresult launch_kernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                       unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                       void** parameters, void** extra) {
  return guarded([&] {
    run({function,
         {grid_x, grid_y, grid_z},
         {block_x, block_y, block_z},
         shared_bytes,
         stream,
         parameters,
         extra});
  });
}

void record(CUevent handle) {
  if (handle == nullptr) return;
  const auto event = platform().events.find(handle);
  require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  event->nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

/// Attributes that change how a launch is scheduled make no difference here; those that the device
/// cannot honour are refused.
void check_attributes(const CUlaunchConfig& config) {
  require(config.numAttrs == 0 || config.attrs != nullptr);
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    switch (config.attrs[i].id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        require(value.cooperative == 0, CUDA_ERROR_NOT_SUPPORTED);
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        require(value.clusterDim.x == 1 && value.clusterDim.y == 1 && value.clusterDim.z == 1,
                CUDA_ERROR_INVALID_CLUSTER_SIZE);
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        require(value.deviceUpdatableKernelNode.deviceUpdatable == 0, CUDA_ERROR_NOT_SUPPORTED);
        break;
      default:
        require(config.attrs[i].id >= CU_LAUNCH_ATTRIBUTE_IGNORE &&
                config.attrs[i].id <= CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING);
    }
  }
}

void record_events(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttributeValue& value = config.attrs[i].value;
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      record(value.programmaticEvent.event);
    }
    if (config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) {
      record(value.launchCompletionEvent.event);
    }
  }
}

CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  return guarded([&] {
    require(config != nullptr);
    check_attributes(*config);
    run({function,
         {config->gridDimX, config->gridDimY, config->gridDimZ},
         {config->blockDimX, config->blockDimY, config->blockDimZ},
         config->sharedMemBytes,
         config->hStream,
         parameters,
         extra});
    record_events(*config);
  });
}

}  // namespace

void install_launch(DriverApi& api) {
  api.cuLaunchKernel = launch_kernel;
  api.cuLaunchKernelEx = launch_kernel_ex;
}

}  // namespace kernwright::sim
