// Driver functions that capture streams.
#include "sim/device/sim_driver.h"

namespace kernwright::sim {
namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

void stream_begin_capture(CUstream stream, CUstreamCaptureMode mode) {
  const StreamUse use = use_stream(stream);
  require(is_mode(mode));
  sim_driver().captures.begin(use, mode);
}

void stream_end_capture(CUstream stream, CUgraph* graph) {
  require(graph != nullptr);
  *graph = nullptr;
  *graph = sim_driver().captures.end(use_stream(stream))->handle;
}

void stream_is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  require(status != nullptr);
  *status = sim_driver().captures.info(use_stream(stream), nullptr, nullptr).status;
}

void stream_get_capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                             CUgraph* graph, const CUgraphNode** dependencies,
                             std::size_t* dependency_count) {
  require(status != nullptr);
  const auto info = sim_driver().captures.info(use_stream(stream), dependencies, dependency_count);
  *status = info.status;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
}

void thread_exchange_stream_capture_mode(CUstreamCaptureMode* mode) {
  sim_driver();
  require(mode != nullptr && is_mode(*mode));
  std::swap(*mode, capture_mode());
}

}  // namespace

void install_capture(DriverApi& api) {
  api.cuStreamBeginCapture = guarded<stream_begin_capture>;
  api.cuStreamEndCapture = guarded<stream_end_capture>;
  api.cuStreamIsCapturing = guarded<stream_is_capturing>;
  api.cuStreamGetCaptureInfo = guarded<stream_get_capture_info>;
  api.cuThreadExchangeStreamCaptureMode = guarded<thread_exchange_stream_capture_mode>;
}

}  // namespace kernwright::sim
