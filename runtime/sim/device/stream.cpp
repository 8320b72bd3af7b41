// Driver functions of streams. Work runs when it is issued: a legal order of every stream.
#include "sim/device/platform.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

bool is_special(CUstream stream) {
  return stream == nullptr || stream == kStreamLegacy || stream == kStreamPerThread;
}

/// Null for the default streams, which have no object.
std::shared_ptr<Stream> find_stream(CUstream handle) {
  if (is_special(handle)) {
    current_context();
    return nullptr;
  }
  auto stream = platform().streams.find(handle);
  require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return stream;
}

CUresult stream_create_with_priority(CUstream* handle, unsigned int flags, int priority) {
  return guarded([&] {
    auto context = current_context();
    require(handle != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
    auto stream = std::make_shared<Stream>();
    stream->context = std::move(context);
    stream->id = platform().next_id();
    stream->flags = flags;
    stream->priority =
        std::clamp(priority, device_profile().priority_greatest, device_profile().priority_least);
    *handle = platform().streams.insert(std::move(stream));
  });
}

CUresult stream_create(CUstream* handle, unsigned int flags) {
  return stream_create_with_priority(handle, flags, 0);
}

CUresult stream_destroy(CUstream handle) {
  return guarded(
      [&] { require(platform().streams.remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}

CUresult stream_synchronize(CUstream handle) {
  return guarded([&] { find_stream(handle); });
}

CUresult stream_query(CUstream handle) {
  return guarded([&] { find_stream(handle); });
}

CUresult stream_wait_event(CUstream handle, CUevent event, unsigned int flags) {
  return guarded([&] {
    find_stream(handle);
    require(platform().events.find(event) != nullptr, CUDA_ERROR_INVALID_HANDLE);
    require(flags == CU_EVENT_WAIT_DEFAULT || flags == CU_EVENT_WAIT_EXTERNAL);
  });
}

CUresult stream_get_priority(CUstream handle, int* priority) {
  return guarded([&] {
    require(priority != nullptr);
    const auto stream = find_stream(handle);
    *priority = stream == nullptr ? 0 : stream->priority;
  });
}

CUresult stream_get_flags(CUstream handle, unsigned int* flags) {
  return guarded([&] {
    require(flags != nullptr);
    const auto stream = find_stream(handle);
    *flags = stream == nullptr ? unsigned{CU_STREAM_DEFAULT} : stream->flags;
  });
}

CUresult stream_get_ctx(CUstream handle, CUcontext* context) {
  return guarded([&] {
    require(context != nullptr);
    *context = context_of(handle)->device.handle;
  });
}

/// Ids of the default streams are derived from the context's, which no stream has.
CUresult stream_get_id(CUstream handle, unsigned long long* id) {
  return guarded([&] {
    require(id != nullptr);
    const auto stream = find_stream(handle);
    *id = stream == nullptr ? current_context()->id : stream->id;
  });
}

CUresult stream_is_capturing(CUstream handle, CUstreamCaptureStatus* status) {
  return guarded([&] {
    require(status != nullptr);
    find_stream(handle);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
  });
}

CUresult stream_get_capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id,
                                 CUgraph* graph, const CUgraphNode** dependencies,
                                 std::size_t* dependency_count) {
  return guarded([&] {
    require(status != nullptr);
    find_stream(handle);
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (id != nullptr) *id = 0;
    if (graph != nullptr) *graph = nullptr;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (dependency_count != nullptr) *dependency_count = 0;
  });
}

/// Runs at once, on the calling thread and with no lock held.
CUresult launch_host_func(CUstream handle, CUhostFn function, void* user_data) {
  const CUresult result = guarded([&] {
    require(function != nullptr);
    find_stream(handle);
  });
  if (result == CUDA_SUCCESS) function(user_data);
  return result;
}

}  // namespace

void install_stream(DriverApi& api) {
  api.cuStreamCreate = stream_create;
  api.cuStreamCreateWithPriority = stream_create_with_priority;
  api.cuStreamDestroy = stream_destroy;
  api.cuStreamSynchronize = stream_synchronize;
  api.cuStreamQuery = stream_query;
  api.cuStreamWaitEvent = stream_wait_event;
  api.cuStreamGetPriority = stream_get_priority;
  api.cuStreamGetFlags = stream_get_flags;
  api.cuStreamGetCtx = stream_get_ctx;
  api.cuStreamGetId = stream_get_id;
  api.cuStreamIsCapturing = stream_is_capturing;
  api.cuStreamGetCaptureInfo = stream_get_capture_info;
  api.cuLaunchHostFunc = launch_host_func;
}

}  // namespace kernwright::sim
