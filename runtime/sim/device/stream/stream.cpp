// Driver functions of streams.
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

/// The host knows of all work given to the stream; on the default stream also of all blocking
/// streams' work.
void host_learns(const StreamUse& use) {
  StreamOrder& order = sim_driver().order;
  order.host_learns(*use.stream);
  if (use.stream->legacy) order.host_learns(*use.context, true);
}

}  // namespace

void calls::cuStreamCreateWithPriority(CUstream* handle, unsigned int flags, int priority) {
  auto context = current_context();
  require(handle != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
  auto stream = std::make_shared<Stream>();
  stream->context = std::move(context);
  stream->id = sim_driver().next_id();
  stream->flags = flags;
  stream->priority =
      std::clamp(priority, device_profile().priority_greatest, device_profile().priority_least);
  *handle = sim_driver().streams.insert(std::move(stream));
}

void calls::cuStreamCreate(CUstream* handle, unsigned int flags) {
  cuStreamCreateWithPriority(handle, flags, 0);
}

/// Work still in the stream runs in its turn, as on a GPU.
void calls::cuStreamDestroy(CUstream handle) {
  SimDriver& instance = sim_driver();
  const auto known = instance.streams.find(handle);
  require(known == nullptr || known->green == nullptr || !known->green->destroyed,
          CUDA_ERROR_CONTEXT_IS_DESTROYED);
  const auto stream = instance.streams.remove(handle);
  require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
  instance.captures.leave(*stream);
  if (instance.order.on()) instance.order.retire(*stream);
}

void calls::cuStreamSynchronize(CUstream handle) {
  const StreamUse use = use_stream(handle);
  sim_driver().captures.forbid_wait(use);
  sim_driver().queues.finish(use);
  host_learns(use);
  sim_driver().queues.surface(*use.context);
}

void calls::cuStreamQuery(CUstream handle) {
  const StreamUse use = use_stream(handle);
  sim_driver().captures.forbid_wait(use);
  const bool over = sim_driver().queues.query(use);
  sim_driver().queues.surface(*use.context);
  require(over, CUDA_ERROR_NOT_READY);
  host_learns(use);
}

void calls::cuStreamGetPriority(CUstream handle, int* priority) {
  require(priority != nullptr);
  *priority = use_stream(handle).stream->priority;
}

void calls::cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  require(flags != nullptr);
  *flags = use_stream(handle).stream->flags;
}

void calls::cuStreamGetCtx(CUstream handle, CUcontext* context) {
  require(context != nullptr);
  *context = use_stream(handle).context->device.handle;
}

void calls::cuStreamGetId(CUstream handle, unsigned long long* id) {
  require(id != nullptr);
  *id = use_stream(handle).stream->id;
}

/// Runs with no lock held, on a thread that issues work or waits for some.
void calls::cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
  require(function != nullptr);
  submit(use_stream(handle), HostWork{function, user_data});
}

}  // namespace kernwright::sim
