// Kernels: attributes and limits gathered once, then launches at the driver's own cost.
#include "core/kernel.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/activity.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/launch/launch_hook.h"
#include "core/launch/launch_limits.h"
#include "driver/nvtx.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>

namespace kernwright {
namespace {

/// Clusters of more blocks need an opt-in, up to the largest that any device has.
constexpr std::uint32_t kPortableClusterBlocks = 8;
constexpr std::uint32_t kLargestClusterBlocks = 16;
/// The driver that introduced launch-completion events.
constexpr int kLaunchCompletionVersion = 12030;

/// The driver's facts about a kernel.
struct KernelFacts {
  KernelAttributes attributes;
  LaunchLimits limits;
};

}  // namespace

struct Kernel::Box {
  Box(Module m, KernelSignature s)
      : module(std::move(m)),
        device(module.device()),
        signature(std::move(s)),
        function(module.function(signature.lowered)),
        tag(signature.name, signature.lowered, module.origin()) {
    const ContextGuard guard(device);
    dynamic_shared = static_cast<std::uint32_t>(
        std::max(0, attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)));
    loaded = read_facts();
    complete_signature();
  }

  int attribute(CUfunction_attribute which) const {
    int value = 0;
    const CUresult result = device.driver().cuFuncGetAttribute(&value, which, function);
    if (result != CUDA_SUCCESS) device.fail(result, "cuFuncGetAttribute", identify());
    return value;
  }
  std::string identify() const { return "kernel " + signature.name; }
  std::string describe() const { return format("{} on {}", identify(), device.label()); }

  KernelFacts read_facts() const;
  KernelAttributes read_attributes() const;
  LaunchLimits read_limits(const KernelAttributes& attributes) const;
  void complete_signature();
  /// The facts with the kernel's own register counts, which a compile may have to tell. Whatever
  /// depends on them asks here before it asks the driver.
  const KernelFacts& facts() const;
  void require_fit(const LaunchConfig& config) const;
  void require_resident(const LaunchConfig& config) const;
  void require_large_cluster(const LaunchConfig& config) const;
  int max_cluster(std::uint32_t block, std::uint32_t shared_bytes) const;
  void allow_dynamic_shared(std::size_t bytes) const;
  void allow_large_clusters() const;
  int occupancy(int block, std::size_t shared_bytes) const;

  Module module;
  Device& device;
  KernelSignature signature;
  CUfunction function;
  KernelTag tag;
  KernelFacts loaded;  ///< when module.makes_cubin(), with the most registers it may have
  mutable std::once_flag completed;
  mutable KernelFacts complete;  ///< after `completed`
  // Function attributes of the driver that grow on demand; the mutex orders the growing.
  mutable std::mutex growth;
  mutable std::atomic<std::uint32_t> dynamic_shared{0};
  mutable std::atomic<bool> large_clusters{false};
};

KernelFacts Kernel::Box::read_facts() const {
  const KernelAttributes attributes = read_attributes();
  return {attributes, read_limits(attributes)};
}

const KernelFacts& Kernel::Box::facts() const {
  if (!module.makes_cubin()) [[likely]]
    return loaded;
  std::call_once(completed, [&] {
    module.complete_resources();
    const ContextGuard guard(device);
    complete = read_facts();
  });
  return complete;
}

KernelAttributes Kernel::Box::read_attributes() const {
  KernelAttributes attributes;
  attributes.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes.shared_bytes = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  attributes.local_bytes = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attributes.constant_bytes = attribute(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  attributes.max_threads_per_block = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes.ptx_version = attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes.binary_version = attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  return attributes;
}

LaunchLimits Kernel::Box::read_limits(const KernelAttributes& attributes) const {
  LaunchLimits limits;
  const auto device_limit = [&](CUdevice_attribute which) {
    return static_cast<std::uint32_t>(std::max(0, device.attribute(which)));
  };
  limits.grid = {device_limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                 device_limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                 device_limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  limits.block = {device_limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                  device_limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                  device_limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  limits.device_threads = device_limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  limits.kernel_threads = static_cast<std::uint32_t>(attributes.max_threads_per_block);
  limits.static_shared = static_cast<std::uint32_t>(attributes.shared_bytes);
  limits.block_shared = device_limit(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  limits.cooperative = device_limit(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  limits.programmatic_dependent = device.compute_capability().number() >= 90;
  limits.launch_completion = device.driver_version() >= kLaunchCompletionVersion;
  const CUresult ranged = device.driver().cuCtxGetStreamPriorityRange(&limits.least_priority,
                                                                      &limits.greatest_priority);
  if (ranged != CUDA_SUCCESS) device.fail(ranged, "cuCtxGetStreamPriorityRange", identify());
  if (!device.capabilities().clusters || device_limit(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == 0) {
    return limits;
  }
  limits.cluster_blocks = kLargestClusterBlocks;
  limits.required_cluster = {
      static_cast<std::uint32_t>(attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)),
      static_cast<std::uint32_t>(attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)),
      static_cast<std::uint32_t>(attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH))};
  return limits;
}

void Kernel::Box::complete_signature() {
  const DriverApi& api = device.driver();
  signature.lay_out();
  std::size_t count = 0;
  for (;; ++count) {
    std::size_t offset = 0;
    std::size_t size = 0;
    const CUresult result = api.cuFuncGetParamInfo(function, count, &offset, &size);
    if (result == CUDA_ERROR_NOT_SUPPORTED) {  // a driver before CUDA 12.4
      if (signature.is_told) return;
      throw Error(
          format("{}: neither its code nor this driver tells its parameters: use object code "
                 "of kernwright, or a driver of CUDA 12.4 or newer",
                 identify()));
    }
    if (result == CUDA_ERROR_INVALID_VALUE) break;  // there is no parameter of that index
    if (result != CUDA_SUCCESS) device.fail(result, "cuFuncGetParamInfo", identify());
    if (!signature.is_told) signature.add_untyped(size);
    if (count < signature.parameters.size()) {
      signature.parameters[count].offset = offset;
      signature.parameters[count].size = size;
    }
  }
  if (count != signature.parameters.size()) {
    throw InvalidArgument(format("{}: the signature {} has {} parameters, the object code {}",
                                 identify(), signature.to_string(), signature.parameters.size(),
                                 count));
  }
}

void Kernel::Box::require_fit(const LaunchConfig& config) const {
  // More registers than the kernel has may refuse a launch, and allow none that it has to refuse.
  if (!loaded.limits.allow(config) && !facts().limits.allow(config)) [[unlikely]] {
    const LimitViolation violation = facts().limits.explain(config);
    throw LaunchConfigError(format("{} for {}{}{}{}", violation.text, describe(),
                                   violation.note.empty() ? "" : " (", violation.note,
                                   violation.note.empty() ? "" : ")"));
  }
  if (config.stream && &config.stream.device() != &device) [[unlikely]] {
    throw InvalidArgument(
        format("{} cannot be launched on {}", describe(), config.stream.identify()));
  }
}

/// A cooperative grid must be resident as a whole. Asks the driver, so only for such launches.
void Kernel::Box::require_resident(const LaunchConfig& config) const {
  const auto threads = static_cast<int>(config.block.count());
  const int per_multiprocessor = occupancy(threads, config.shared_bytes);
  const int multiprocessors = multiprocessors_of(config.stream, device);
  const auto resident = static_cast<std::uint64_t>(per_multiprocessor) * multiprocessors;
  if (config.grid.count() <= resident) return;
  throw LaunchConfigError(format(
      "cooperative grid of {} blocks of {} threads: at most {} blocks ({} on each of {} "
      "multiprocessors) for {}",
      config.grid.count(), threads, resident, per_multiprocessor, multiprocessors, describe()));
}

/// Clusters above the portable size fit or not depending on the kernel: asked from the driver.
void Kernel::Box::require_large_cluster(const LaunchConfig& config) const {
  if (!large_clusters.load(std::memory_order_relaxed)) allow_large_clusters();
  const auto threads = static_cast<std::uint32_t>(config.block.count());
  const int largest = max_cluster(threads, config.shared_bytes);
  if (config.cluster.count() <= static_cast<std::uint64_t>(largest)) return;
  throw LaunchConfigError(format(
      "cluster of {} blocks of {} threads with {} bytes of dynamic shared memory: at most {} "
      "blocks for {}",
      config.cluster.count(), threads, config.shared_bytes, largest, describe()));
}

int Kernel::Box::max_cluster(std::uint32_t block, std::uint32_t shared_bytes) const {
  facts();
  if (shared_bytes > dynamic_shared.load(std::memory_order_relaxed)) {
    allow_dynamic_shared(shared_bytes);
  }
  CUlaunchConfig config{};
  config.gridDimX = kLargestClusterBlocks;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = block;
  config.sharedMemBytes = shared_bytes;
  int blocks = 0;
  const CUresult result =
      device.driver().cuOccupancyMaxPotentialClusterSize(&blocks, function, &config);
  if (result != CUDA_SUCCESS) {
    device.fail(result, "cuOccupancyMaxPotentialClusterSize", identify());
  }
  return blocks;
}

void Kernel::Box::allow_dynamic_shared(std::size_t bytes) const {
  const std::lock_guard lock(growth);
  if (bytes <= dynamic_shared.load(std::memory_order_relaxed)) return;
  const CUresult result = device.driver().cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes));
  if (result != CUDA_SUCCESS) {
    device.fail(result, "cuFuncSetAttribute",
                format("{}, dynamic shared memory of {} bytes", identify(), bytes));
  }
  dynamic_shared.store(static_cast<std::uint32_t>(bytes), std::memory_order_relaxed);
}

void Kernel::Box::allow_large_clusters() const {
  const std::lock_guard lock(growth);
  if (large_clusters.load(std::memory_order_relaxed)) return;
  const CUresult result = device.driver().cuFuncSetAttribute(
      function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  if (result != CUDA_SUCCESS) {
    device.fail(result, "cuFuncSetAttribute",
                format("{}, clusters of more than {} blocks", identify(), kPortableClusterBlocks));
  }
  large_clusters.store(true, std::memory_order_relaxed);
}

int Kernel::Box::occupancy(int block, std::size_t shared_bytes) const {
  facts();
  const ContextGuard guard(device);
  if (shared_bytes > dynamic_shared.load(std::memory_order_relaxed)) {
    allow_dynamic_shared(shared_bytes);
  }
  int blocks = 0;
  const CUresult result = device.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, function, block, shared_bytes);
  if (result != CUDA_SUCCESS) {
    device.fail(result, "cuOccupancyMaxActiveBlocksPerMultiprocessor", identify());
  }
  return blocks;
}

namespace {

/// Launch attributes of one launch, on the caller's stack.
struct AttributeList {
  std::array<CUlaunchAttribute, 6> items;
  unsigned count = 0;

  CUlaunchAttributeValue& add(CUlaunchAttributeID id) noexcept {
    items[count].id = id;
    return items[count++].value;
  }
  explicit AttributeList(const LaunchConfig& config) noexcept {
    const Dim3& cluster = config.cluster;
    if (cluster.x != 0) {
      add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {cluster.x, cluster.y, cluster.z};
    }
    if (config.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (config.priority != 0) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = config.priority;
    if (config.programmatic_dependent) {
      add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
          .programmaticStreamSerializationAllowed = 1;
    }
    if (config.programmatic_event) {
      add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT).programmaticEvent = {
          config.programmatic_event->handle(), 0, config.programmatic_event_at_start ? 1 : 0};
    }
    if (config.launch_completion_event) {
      add(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT).launchCompletionEvent = {
          config.launch_completion_event->handle(), 0};
    }
  }
};

}  // namespace

Kernel::Kernel(Module module, KernelSignature signature)
    : box_(std::make_shared<const Box>(std::move(module), std::move(signature))) {}

const KernelSignature& Kernel::signature() const noexcept { return box_->signature; }
const KernelAttributes& Kernel::attributes() const { return box_->facts().attributes; }
Device& Kernel::device() const noexcept { return box_->device; }
const Module& Kernel::module() const noexcept { return box_->module; }
CUfunction Kernel::handle() const noexcept { return box_->function; }

void Kernel::check(const LaunchConfig& config) const {
  box_->require_fit(config);
  if (config.cooperative) box_->require_resident(config);
  if (config.cluster.count() > kPortableClusterBlocks) {
    const ContextGuard guard(box_->device);
    box_->require_large_cluster(config);
  }
}

namespace {

/// One line that a human can read, written with KERNWRIGHT_LOG=debug. Nothing is compiled for it.
void log_launch(const Kernel& kernel, const KernelAttributes& loaded, const LaunchConfig& config,
                const LaunchSite& site) {
  const Dim3 &g = config.grid, &b = config.block;
  const std::string place = site.to_string();
  log(LogLevel::debug,
      "launch {}[({}, {}, {}), ({}, {}, {})] on {}: {} threads, {}{} registers each, {} + {} bytes "
      "of shared memory{}{}",
      kernel.signature().name, g.x, g.y, g.z, b.x, b.y, b.z,
      config.stream ? config.stream.identify() : "the legacy stream of " + kernel.device().label(),
      g.count() * b.count(), kernel.module().makes_cubin() ? "at most " : "", loaded.registers,
      loaded.shared_bytes, config.shared_bytes, place.empty() ? "" : ", from ", place);
}

Activity make_activity(const Kernel& kernel, const LaunchConfig& config, const LaunchSite& site) {
  return {.kind = Activity::Kind::kernel,
          .name = kernel.signature().name,
          .device = &kernel.device(),
          .grid = config.grid,
          .block = config.block,
          .bytes = config.shared_bytes,
          .site = site};
}

}  // namespace

void Kernel::launch(const LaunchConfig& config, std::span<void* const> arguments,
                    const LaunchSite& site) const {
  const Box& box = *box_;
  Device& device = box.device;
  box.require_fit(config);
  if (arguments.size() != box.signature.parameters.size()) [[unlikely]] {
    throw ArgumentError(format("{}: {} arguments for {} parameters", box.signature.to_string(),
                               arguments.size(), box.signature.parameters.size()));
  }
  if (LaunchHook* const hook = current_launch_hook()) [[unlikely]] {
    const LaunchHookCall call;
    return hook->launch(*this, config, arguments, site);
  }
  const ContextGuard guard(device);
  if (config.cooperative) [[unlikely]] {
    box.require_resident(config);
  }
  if (config.shared_bytes > box.dynamic_shared.load(std::memory_order_relaxed)) [[unlikely]] {
    box.allow_dynamic_shared(config.shared_bytes);
  }
  if (config.cluster.count() > kPortableClusterBlocks) [[unlikely]] {
    box.require_large_cluster(config);
  }
  if (any_capture()) [[unlikely]] {
    if (config.stream.handle() == nullptr) refuse_in_capture(device, nullptr, "a launch");
    require_captured(device, config.stream, "a launch");
  }
  AttributeList attributes(config);
  const CUlaunchConfig launch{config.grid.x,       config.grid.y,          config.grid.z,
                              config.block.x,      config.block.y,         config.block.z,
                              config.shared_bytes, config.stream.handle(), attributes.items.data(),
                              attributes.count};
  if (log_enabled(LogLevel::debug)) [[unlikely]] {
    log_launch(*this, box.loaded.attributes, config, site);
  }
  const NvtxRange range(box.signature.name.c_str());
  std::optional<ActivityScope> activity;
  if (is_recording_activity()) [[unlikely]] {
    activity.emplace(make_activity(*this, config, site), config.stream.handle(), true);
  }
  device.note_launch(box.tag, site);  // before the launch, so that a fault in it finds its line
  const CUresult result = device.driver().cuLaunchKernelEx(
      &launch, box.function, const_cast<void**>(arguments.data()), nullptr);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    device.fail(result, "cuLaunchKernelEx", box.identify());
  }
  if (activity) [[unlikely]] {
    activity->finish();
  }
  if (any_capture()) [[unlikely]] {
    if (const auto capture = find_capture(device, config.stream.handle())) {
      capture->keep_kernel(*this);
    }
  }
}

int Kernel::occupancy(int block, std::size_t shared_bytes) const {
  LaunchConfig config;
  config.block.x = static_cast<std::uint32_t>(std::max(block, 0));
  config.shared_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(shared_bytes, UINT32_MAX));
  box_->require_fit(config);
  return box_->occupancy(block, shared_bytes);
}

int Kernel::suggest_block(std::size_t shared_bytes) const {
  const Box& box = *box_;
  LaunchConfig config;
  config.shared_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(shared_bytes, UINT32_MAX));
  box.require_fit(config);
  box.facts();
  const ContextGuard guard(box.device);
  if (shared_bytes > box.dynamic_shared.load(std::memory_order_relaxed)) {
    box.allow_dynamic_shared(shared_bytes);
  }
  int blocks = 0;
  int threads = 0;
  const CUresult result = box.device.driver().cuOccupancyMaxPotentialBlockSize(
      &blocks, &threads, box.function, nullptr, shared_bytes, 0);
  if (result != CUDA_SUCCESS) {
    box.device.fail(result, "cuOccupancyMaxPotentialBlockSize", box.identify());
  }
  return threads;
}

int Kernel::max_cluster(int block, std::size_t shared_bytes) const {
  const Box& box = *box_;
  LaunchConfig config;
  config.block.x = static_cast<std::uint32_t>(std::max(block, 0));
  config.shared_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(shared_bytes, UINT32_MAX));
  const LaunchLimits& limits = box.loaded.limits;
  if (limits.required_cluster.x != 0) config.grid = limits.required_cluster;
  box.require_fit(config);
  if (limits.cluster_blocks == 0) return 0;
  const ContextGuard guard(box.device);
  if (!box.large_clusters.load(std::memory_order_relaxed)) box.allow_large_clusters();
  return box.max_cluster(config.block.x, config.shared_bytes);
}

int Kernel::active_clusters(const LaunchConfig& config) const {
  const Box& box = *box_;
  check(config);
  if (box.loaded.limits.cluster_blocks == 0) return 0;
  box.facts();
  const ContextGuard guard(box.device);
  if (config.shared_bytes > box.dynamic_shared.load(std::memory_order_relaxed)) {
    box.allow_dynamic_shared(config.shared_bytes);
  }
  AttributeList attributes(config);
  const CUlaunchConfig asked{config.grid.x,       config.grid.y,  config.grid.z,
                             config.block.x,      config.block.y, config.block.z,
                             config.shared_bytes, nullptr,        attributes.items.data(),
                             attributes.count};
  int clusters = 0;
  const CUresult result =
      box.device.driver().cuOccupancyMaxActiveClusters(&clusters, box.function, &asked);
  if (result != CUDA_SUCCESS) {
    box.device.fail(result, "cuOccupancyMaxActiveClusters", box.identify());
  }
  return clusters;
}

}  // namespace kernwright
