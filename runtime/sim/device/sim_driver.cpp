// The process-wide state of the simulated driver.
#include "sim/device/sim_driver.h"

#include "base/byte_text.h"
#include "base/env.h"
#include "base/log.h"
#include "sim/code/dispatch.h"
#include "sim/device.h"
#include "sim/device/launch/thread_pool.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace kernwright::sim {
namespace {

std::atomic<SimDriver*> g_sim_driver{nullptr};
std::atomic<bool> g_forked{false};
std::mutex g_init_mutex;

thread_local std::optional<Fault> t_report;
std::atomic<bool> g_reports_are_logged{false};

/// Least device memory and page-locked memory of a process with little address space.
constexpr std::uint64_t kLeastMemory = std::uint64_t{64} << 20;

/// Page-locked memory is limited by the machine's own.
std::uint64_t machine_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGE_SIZE);
  const std::uint64_t least = std::uint64_t{1} << 30;
  if (pages <= 0 || page <= 0) return least;
  return std::max(least, static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page));
}

std::vector<std::unique_ptr<SimDevice>> make_devices() {
  // Values needed later are checked here, because here the error reaches the user.
  device_profile();
  selected_isa();
  const std::uint64_t wanted = env_number(Env::sim_memory);
  const std::uint64_t least = env_is_set(Env::sim_memory) ? wanted : kLeastMemory;
  std::vector<std::unique_ptr<SimDevice>> devices;
  const auto count = static_cast<int>(env_number(Env::sim_devices));
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    devices.push_back(std::make_unique<SimDevice>(ordinal, wanted, least));
    const std::uint64_t bytes = devices.back()->memory.capacity();
    if (bytes == wanted) continue;
    kernwright::log(LogLevel::warning,
                    "sim:{} has {} of memory instead of {}: this process has no address "
                    "space for more (ulimit -v)",
                    ordinal, describe_bytes(bytes), describe_bytes(wanted));
  }
  return devices;
}

}  // namespace

Context::Context(SimDevice& its_device, std::uint64_t its_id)
    : device(its_device),
      id(its_id),
      heap(its_device.memory,
           device_profile().limits[CU_LIMIT_MALLOC_HEAP_SIZE].value_or(kDefaultHeapBytes)),
      legacy(std::make_shared<Stream>()) {
  legacy->legacy = true;
  legacy->id = its_id;  // which no other stream has
  for (std::size_t i = 0; i < limits.size(); ++i)
    limits[i] = device_profile().limits[i].value_or(0);
}

SimDriver::SimDriver()
    : devices(make_devices()),  // before the host's memory, which takes what is left
      instruction_budget(env_number(Env::sim_budget)),
      launch_limit(env_number(Env::sim_timeout)),
      threads(ThreadPool::default_width()),
      host_memory(machine_memory(), kLeastMemory) {
  for (const auto& device : devices) {
    device->memory.set_neighbours({&host_memory});
    const auto number = static_cast<std::uint64_t>(device->ordinal) + 1;
    device->handle = reinterpret_cast<CUcontext>(std::uint64_t{1} << 56 | number << 6);
    device->default_pool = std::make_shared<MemoryPool>();
    device->default_pool->device = device.get();
    device->default_pool->is_default = true;
    device->default_pool_handle = pools.insert(device->default_pool);
  }
  if (env_is_set(Env::sim_seed)) queues.set_seed(env_number(Env::sim_seed));
  auto words = env_list(Env::checks);
  order.enable(std::erase(words, "streams") != 0);
  checks.set(check_set(words));
}

SimDevice& SimDriver::device(CUdevice ordinal) {
  require(ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size(),
          CUDA_ERROR_INVALID_DEVICE);
  return *devices[static_cast<std::size_t>(ordinal)];
}

SimDevice* SimDriver::get_device(CUcontext handle) const noexcept {
  for (const auto& device : devices) {
    if (device->handle == handle) return device.get();
  }
  const auto green = green_contexts.find(reinterpret_cast<CUgreenCtx>(handle));
  return green != nullptr && green->is_context ? &green->context->device : nullptr;
}

Memory* SimDriver::get_memory(std::uint64_t address) noexcept {
  if (host_memory.search(address).end != 0) return &host_memory;
  for (const auto& device : devices) {
    if (device->memory.search(address).end != 0) return &device->memory;
  }
  return nullptr;
}

AllocationInfo* SimDriver::allocation_at(std::uint64_t address) noexcept {
  const auto found = allocations.find(address);
  return found == allocations.end() ? nullptr : &found->second;
}

std::string SimDriver::describe(std::uint64_t address, std::uint64_t size, bool* freed) {
  for (const auto& device : devices) {
    if (device->memory.covers(address)) return device->memory.describe(address, size, freed);
  }
  return host_memory.describe(address, size, freed);
}

void initialise_sim_driver() {
  const std::lock_guard lock(g_init_mutex);
  if (g_sim_driver.load() != nullptr) return;
  // Worker threads do not live on in a child, so nothing of the driver works there.
  pthread_atfork(nullptr, nullptr, [] { g_forked.store(g_sim_driver.load() != nullptr); });
  g_sim_driver.store(new SimDriver);
}

SimDriver& sim_driver() {
  SimDriver* const instance = g_sim_driver.load(std::memory_order_acquire);
  if (instance == nullptr || g_forked.load(std::memory_order_relaxed)) {
    fail(CUDA_ERROR_NOT_INITIALIZED);
  }
  require(!in_host_function(), CUDA_ERROR_NOT_PERMITTED);
  return *instance;
}

void change_at_end(const std::function<void(SimDriver&)>& change) noexcept {
  bool& inside = in_host_function();
  const bool was_inside = std::exchange(inside, false);
  try {
    SimDriver& instance = sim_driver();
    const std::lock_guard execution(instance.execution);
    change(instance);
  } catch (const Failure&) {
    // The process forked: its child has no devices.
  }
  inside = was_inside;
}

std::vector<CUcontext>& context_stack() noexcept {
  // A destructor of another thread_local may call the driver after the vector is gone: it gets a
  // new one, left to the end of the process.
  static thread_local std::vector<CUcontext>* stack = nullptr;
  static thread_local const struct Owner {
    ~Owner() { delete std::exchange(stack, nullptr); }
  } owner;
  static_cast<void>(&owner);
  if (stack == nullptr) stack = new std::vector<CUcontext>;
  return *stack;
}

std::shared_ptr<Context> live_context(CUcontext handle) {
  SimDevice* const device = sim_driver().get_device(handle);
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const std::lock_guard lock(device->context_mutex);
  require(device->primary != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  require(device->primary->lost == CUDA_SUCCESS, device->primary->lost);
  return device->primary;
}

std::shared_ptr<Context> current_context() {
  sim_driver();
  const std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty() && stack.back() != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  return live_context(stack.back());
}

std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  static thread_local const std::uint64_t number = ++last;
  return number;
}

namespace {

std::shared_ptr<Stream> per_thread_stream(Context& context) {
  const std::lock_guard lock(context.mutex);
  std::shared_ptr<Stream>& stream = context.per_thread[thread_number()];
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    stream->id = sim_driver().next_id();
  }
  return stream;
}

}  // namespace

StreamUse use_stream(CUstream handle) {
  if (handle == nullptr || handle == kStreamLegacy) {
    auto context = current_context();
    auto stream = context->legacy;
    return {std::move(context), std::move(stream)};
  }
  if (handle == kStreamPerThread) {
    auto context = current_context();
    auto stream = per_thread_stream(*context);
    return {std::move(context), std::move(stream)};
  }
  auto stream = sim_driver().streams.find(handle);
  require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
  require(stream->context->lost == CUDA_SUCCESS, stream->context->lost);
  require(stream->green == nullptr || !stream->green->destroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  auto context = stream->context;
  return {std::move(context), std::move(stream)};
}

void lose(Context& context, CUresult code) noexcept {
  const bool ends =
      code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_TIMEOUT ||
      (code >= CUDA_ERROR_ASSERT && code <= CUDA_ERROR_LAUNCH_FAILED &&
       code != CUDA_ERROR_TOO_MANY_PEERS && code != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED &&
       code != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  const SimDriver* const instance = g_sim_driver.load();
  if (!ends || instance == nullptr || !instance->sticky_errors) return;
  CUresult none = CUDA_SUCCESS;
  context.lost.compare_exchange_strong(none, code);
}

std::shared_ptr<Mark> submit(const StreamUse& use, Work&& work,
                             std::vector<std::shared_ptr<Mark>> after) {
  SimDriver& instance = sim_driver();
  if (instance.captures.take(use, work)) return nullptr;
  return instance.queues.issue(use, std::move(work), std::move(after));
}

void set_schedule_seed(std::optional<std::uint64_t> seed) {
  initialise_sim_driver();
  sim_driver().queues.set_seed(seed);
}

void set_stream_checks(bool on) {
  initialise_sim_driver();
  sim_driver().order.enable(on);
}

void set_sticky_errors(bool on) {
  initialise_sim_driver();
  sim_driver().sticky_errors = on;
}

void fail_call(CUresult code, FaultKind kind, std::string message, std::uint64_t address,
               std::uint64_t size, std::string allocation) {
  Fault report;
  report.kind = kind;
  report.message = std::move(message);
  report.address = address;
  report.access_size = size;
  report.allocation = std::move(allocation);
  throw Failure{code, std::move(report)};
}

void set_report_log(bool on) noexcept { g_reports_are_logged = on; }

void leave_report(Fault report) noexcept {
  if (g_reports_are_logged) {
    try {
      log(LogLevel::error, "simulated device: {}", report.to_string());
    } catch (const std::bad_alloc&) {  // no room for the text: the code goes to the caller anyway
    }
  }
  t_report = std::move(report);
}
void forget_report() noexcept { t_report.reset(); }

bool take_report(Fault& report) {
  if (!t_report) return false;
  report = std::move(*t_report);
  t_report.reset();
  return true;
}

}  // namespace kernwright::sim
