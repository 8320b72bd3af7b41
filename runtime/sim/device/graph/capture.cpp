// Driver functions for stream capture.
#include "sim/device/sim_driver.h"

namespace kernwright::sim {
namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

}  // namespace

void calls::cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  const StreamUse use = use_stream(stream);
  require(is_mode(mode));
  sim_driver().captures.begin(use, mode);
}

void calls::cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  require(graph != nullptr);
  *graph = nullptr;
  *graph = sim_driver().captures.end(use_stream(stream))->handle;
}

void calls::cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  require(status != nullptr);
  *status = sim_driver().captures.info(use_stream(stream), nullptr, nullptr).status;
}

void calls::cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                   CUgraph* graph, const CUgraphNode** dependencies,
                                   std::size_t* dependency_count) {
  require(status != nullptr);
  const auto info = sim_driver().captures.info(use_stream(stream), dependencies, dependency_count);
  *status = info.status;
  if (id != nullptr) *id = info.id;
  if (graph != nullptr) *graph = info.graph;
}

void calls::cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  sim_driver();
  require(mode != nullptr && is_mode(*mode));
  std::swap(*mode, capture_mode());
}

}  // namespace kernwright::sim
