// The process-wide state of the simulated driver.
#include "sim/device/platform.h"

#include "base/env.h"
#include "sim/device/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace kernwright::sim {
namespace {

std::atomic<Platform*> g_platform{nullptr};
std::atomic<bool> g_forked{false};
std::mutex g_init_mutex;

thread_local std::optional<FaultReport> t_report;

/// Page-locked memory is limited by the machine's own.
std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  const std::uint64_t least = std::uint64_t{1} << 30;
  if (pages <= 0 || page <= 0) return least;
  return std::max(least, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page));
}

}  // namespace

Context::Context(SimDevice& its_device, std::uint64_t its_id)
    : device(its_device),
      id(its_id),
      heap(its_device.memory,
           device_profile().limits[CU_LIMIT_MALLOC_HEAP_SIZE].value_or(kDefaultHeapBytes)) {
  for (std::size_t i = 0; i < limits.size(); ++i)
    limits[i] = device_profile().limits[i].value_or(0);
}

Platform::Platform()
    : instruction_budget(env_number(Env::sim_budget)),
      threads(ThreadPool::default_width()),
      host_memory(machine_memory()) {
  const auto count = static_cast<int>(env_number(Env::sim_devices));
  const std::uint64_t bytes = env_number(Env::sim_memory);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = std::make_unique<SimDevice>(ordinal, bytes);
    device->memory.set_neighbours({&host_memory});
    device->handle =
        reinterpret_cast<CUcontext>(std::uint64_t{1} << 56 | (std::uint64_t(ordinal) + 1) << 6);
    device->default_pool = std::make_shared<MemoryPool>();
    device->default_pool->device = device.get();
    device->default_pool->is_default = true;
    device->default_pool_handle = pools.insert(device->default_pool);
    devices.push_back(std::move(device));
  }
}

SimDevice& Platform::device(CUdevice ordinal) {
  require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size(),
          CUDA_ERROR_INVALID_DEVICE);
  return *devices[static_cast<std::size_t>(ordinal)];
}

SimDevice* Platform::device_of(CUcontext handle) const noexcept {
  for (const auto& device : devices) {
    if (device->handle == handle) return device.get();
  }
  return nullptr;
}

Memory* Platform::memory_of(std::uint64_t address) noexcept {
  if (host_memory.find_own(address).end != 0) return &host_memory;
  for (const auto& device : devices) {
    if (device->memory.find_own(address).end != 0) return &device->memory;
  }
  return nullptr;
}

std::string Platform::describe(std::uint64_t address, std::uint64_t size, bool* freed) {
  for (const auto& device : devices) {
    if (device->memory.covers(address)) return device->memory.describe(address, size, freed);
  }
  return host_memory.describe(address, size, freed);
}

void initialise_platform() {
  const std::lock_guard lock(g_init_mutex);
  if (g_platform.load() != nullptr) return;
  // Worker threads do not live on in a child, so nothing of the platform works there.
  pthread_atfork(nullptr, nullptr, [] { g_forked.store(g_platform.load() != nullptr); });
  g_platform.store(new Platform);
}

Platform& platform() {
  Platform* const instance = g_platform.load(std::memory_order_acquire);
  if (instance == nullptr || g_forked.load(std::memory_order_relaxed)) {
    fail(CUDA_ERROR_NOT_INITIALIZED);
  }
  return *instance;
}

std::vector<CUcontext>& context_stack() noexcept {
  static thread_local std::vector<CUcontext> stack;
  return stack;
}

namespace {

std::shared_ptr<Context> live_context(SimDevice& device) {
  const std::lock_guard lock(device.context_mutex);
  require(device.primary != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  return device.primary;
}

}  // namespace

std::shared_ptr<Context> current_context() {
  Platform& instance = platform();
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  SimDevice* const device = instance.device_of(stack.back());
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return live_context(*device);
}

std::shared_ptr<Context> context_of(CUstream stream) {
  auto current = current_context();
  if (stream == nullptr || stream == kStreamLegacy || stream == kStreamPerThread) return current;
  const auto object = platform().streams.find(stream);
  require(object != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return object->context;
}

void fail_with(CUresult code, FaultKind kind, std::string message, std::uint64_t address,
               std::uint64_t size, std::string allocation) {
  FaultReport report;
  report.kind = kind;
  report.message = std::move(message);
  report.address = address;
  report.access_size = size;
  report.allocation = std::move(allocation);
  throw Failure{code, std::move(report)};
}

void leave_report(FaultReport report) { t_report = std::move(report); }
void forget_report() noexcept { t_report.reset(); }

bool take_report(FaultReport& report) {
  if (!t_report) return false;
  report = std::move(*t_report);
  t_report.reset();
  return true;
}

}  // namespace kernwright::sim
