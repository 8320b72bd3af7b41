// Driver functions of streams.
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

void stream_create_with_priority(CUstream* handle, unsigned int flags, int priority) {
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

void stream_create(CUstream* handle, unsigned int flags) {
  stream_create_with_priority(handle, flags, 0);
}

/// Work that the stream still holds runs in its turn, as on a GPU.
void stream_destroy(CUstream handle) {
  SimDriver& instance = sim_driver();
  const auto stream = instance.streams.remove(handle);
  require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
  instance.captures.leave(*stream);
  if (instance.order.on()) instance.order.retire(*stream);
}

/// The host knows of all that the stream was given; on the default stream that is the work of all
/// blocking streams too.
void host_learns(const StreamUse& use) {
  StreamOrder& order = sim_driver().order;
  order.host_learns(*use.stream);
  if (use.stream->legacy) order.host_learns(*use.context, true);
}

void stream_synchronize(CUstream handle) {
  const StreamUse use = use_stream(handle);
  sim_driver().captures.forbid_wait(use);
  sim_driver().queues.finish(use);
  host_learns(use);
  sim_driver().queues.surface(*use.context);
}

void stream_query(CUstream handle) {
  const StreamUse use = use_stream(handle);
  sim_driver().captures.forbid_wait(use);
  const bool over = sim_driver().queues.query(use);
  sim_driver().queues.surface(*use.context);
  require(over, CUDA_ERROR_NOT_READY);
  host_learns(use);
}

void stream_get_priority(CUstream handle, int* priority) {
  require(priority != nullptr);
  *priority = use_stream(handle).stream->priority;
}

void stream_get_flags(CUstream handle, unsigned int* flags) {
  require(flags != nullptr);
  *flags = use_stream(handle).stream->flags;
}

void stream_get_ctx(CUstream handle, CUcontext* context) {
  require(context != nullptr);
  *context = use_stream(handle).context->device.handle;
}

void stream_get_id(CUstream handle, unsigned long long* id) {
  require(id != nullptr);
  *id = use_stream(handle).stream->id;
}

/// Runs with no lock held, on a thread that issues work or waits for some.
void launch_host_func(CUstream handle, CUhostFn function, void* user_data) {
  require(function != nullptr);
  submit(use_stream(handle), HostWork{function, user_data});
}

}  // namespace

void install_stream(DriverApi& api) {
  api.cuStreamCreate = guarded<stream_create>;
  api.cuStreamCreateWithPriority = guarded<stream_create_with_priority>;
  api.cuStreamDestroy = guarded<stream_destroy>;
  api.cuStreamSynchronize = guarded<stream_synchronize>;
  api.cuStreamQuery = guarded<stream_query>;
  api.cuStreamGetPriority = guarded<stream_get_priority>;
  api.cuStreamGetFlags = guarded<stream_get_flags>;
  api.cuStreamGetCtx = guarded<stream_get_ctx>;
  api.cuStreamGetId = guarded<stream_get_id>;
  api.cuLaunchHostFunc = guarded<launch_host_func>;
}

}  // namespace kernwright::sim
