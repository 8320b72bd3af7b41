// Driver functions of contexts: primary contexts, the thread's stack, limits, peers.
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

namespace kernwright::sim {
namespace {

/// Accepts null, or the handle of a retained context.
void require_context(CUcontext context) {
  SimDevice* const device = sim_driver().get_device(context);
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  const std::lock_guard lock(device->context_mutex);
  require(device->primary != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

std::size_t limit_index(CUlimit limit) {
  const auto index = static_cast<std::size_t>(limit);
  require(limit >= 0 && index < kLimitCount);
  require(device_profile().limits[index].has_value(), CUDA_ERROR_UNSUPPORTED_LIMIT);
  return index;
}

/// The device of the peer in the current context's question.
SimDevice& peer_device(Context& context, CUcontext peer) {
  SimDevice* const device = sim_driver().get_device(peer);
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  require(device != &context.device, CUDA_ERROR_INVALID_DEVICE);
  return *device;
}

}  // namespace

void calls::cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  require(context != nullptr);
  SimDevice& device = sim_driver().device(ordinal);
  const std::lock_guard lock(device.context_mutex);
  if (device.primary == nullptr) {
    device.primary = std::make_shared<Context>(device, sim_driver().next_id());
  }
  ++device.retains;
  *context = device.handle;
}

void calls::cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  SimDevice& device = sim_driver().device(ordinal);
  std::shared_ptr<Context> last;
  {
    const std::lock_guard lock(device.context_mutex);
    require(device.retains > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--device.retains == 0) last = std::move(device.primary);
  }
  if (last != nullptr) tear_down(*last);
}

/// Everything owned by the context goes away; its holders go on with a fresh one.
void calls::cuDevicePrimaryCtxReset(CUdevice ordinal) {
  SimDevice& device = sim_driver().device(ordinal);
  std::shared_ptr<Context> old;
  {
    const std::lock_guard lock(device.context_mutex);
    if (device.primary == nullptr) return;
    old = std::exchange(device.primary, std::make_shared<Context>(device, sim_driver().next_id()));
  }
  tear_down(*old);
}

void calls::cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned int* flags, int* active) {
  require(flags != nullptr && active != nullptr);
  SimDevice& device = sim_driver().device(ordinal);
  const std::lock_guard lock(device.context_mutex);
  *flags = CU_CTX_SCHED_AUTO;
  *active = device.primary != nullptr;
}

void calls::cuCtxGetCurrent(CUcontext* context) {
  require(context != nullptr);
  sim_driver();
  *context = context_stack().empty() ? nullptr : context_stack().back();
}

void calls::cuCtxSetCurrent(CUcontext context) {
  sim_driver();
  std::vector<CUcontext>& stack = context_stack();
  if (context == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return;
  }
  require_context(context);
  if (stack.empty()) {
    stack.push_back(context);
  } else {
    stack.back() = context;
  }
}

void calls::cuCtxPushCurrent(CUcontext context) {
  require_context(context);
  context_stack().push_back(context);
}

void calls::cuCtxPopCurrent(CUcontext* context) {
  sim_driver();
  std::vector<CUcontext>& stack = context_stack();
  require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
}

void calls::cuCtxGetDevice(CUdevice* device) {
  require(device != nullptr);
  *device = current_context()->device.ordinal;
}

void calls::cuCtxSynchronize() {
  const auto context = current_context();
  SimDriver& instance = sim_driver();
  instance.captures.forbid_context_wait(*context);
  instance.queues.finish(*context);
  instance.order.host_learns(*context, false);
  instance.queues.surface(*context);
}

void calls::cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  current_context();
  if (least != nullptr) *least = device_profile().priority_least;
  if (greatest != nullptr) *greatest = device_profile().priority_greatest;
}

void calls::cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  require(value != nullptr);
  *value = current_context()->limits[limit_index(limit)];
}

void calls::cuCtxSetLimit(CUlimit limit, std::size_t value) {
  const auto context = current_context();
  const auto index = limit_index(limit);
  sim_driver().captures.forbid_unsafe();
  context->limits[index] = value;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) context->heap.set_limit(value);
}

/// There is no L2 cache with persisting lines.
void calls::cuCtxResetPersistingL2Cache() { static_cast<void>(current_context()); }

void calls::cuCtxGetId(CUcontext handle, unsigned long long* id) {
  require(id != nullptr);
  if (handle == nullptr) {
    *id = current_context()->id;
    return;
  }
  require_context(handle);
  SimDevice& device = *sim_driver().get_device(handle);
  const std::lock_guard lock(device.context_mutex);
  *id = device.primary->id;
}

void calls::cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  require(flags == 0);
  const auto context = current_context();
  SimDevice& device = peer_device(*context, peer);
  require_context(peer);
  sim_driver().captures.forbid_unsafe();
  const std::lock_guard lock(context->mutex);
  require(context->peers.insert(device.ordinal).second, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  apply_peers(*context);
}

void calls::cuCtxDisablePeerAccess(CUcontext peer) {
  const auto context = current_context();
  SimDevice& device = peer_device(*context, peer);
  sim_driver().captures.forbid_unsafe();
  sim_driver().queues.finish(*context);
  const std::lock_guard lock(context->mutex);
  require(context->peers.erase(device.ordinal) != 0, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  apply_peers(*context);
}

}  // namespace kernwright::sim
