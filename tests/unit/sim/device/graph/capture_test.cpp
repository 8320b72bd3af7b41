// Stream capture of the simulated driver: states, forks and joins, modes and threads.
#include "unit/sim/device/capture_fixture.h"

#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// Two streams and an event.
struct Fork : StreamDevice {
  Fork() : x(words(2)), main(stream()), side(stream()), mark(event()) {}
  ~Fork() {
    api.cuEventDestroy(mark);
    api.cuStreamDestroy(main);
    api.cuStreamDestroy(side);
    api.cuMemFree(x);
  }
  CUdeviceptr x;
  CUstream main, side;
  CUevent mark;
};

}  // namespace

TEST_CASE("sim capture: begin, end, and what the stream says meanwhile") {
  Fork device;
  const DriverApi& api = device.api;
  CUgraph graph = nullptr;
  CHECK(api.cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(api.cuStreamBeginCapture(kStreamLegacy, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(api.cuStreamBeginCapture(device.main, static_cast<CUstreamCaptureMode>(3)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamEndCapture(device.main, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  CHECK(api.cuStreamEndCapture(device.main, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_NONE);
  begin_capture(device, device.main);
  CHECK(api.cuStreamBeginCapture(device.main, CU_STREAM_CAPTURE_MODE_GLOBAL) ==
        CUDA_ERROR_ILLEGAL_STATE);
  CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(capture_status(device, device.side) == CU_STREAM_CAPTURE_STATUS_NONE);
  REQUIRE(device.push(device.main, device.x, 1) == CUDA_SUCCESS);
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  const CUgraphNode* dependencies = nullptr;
  std::size_t count = 9;
  REQUIRE(api.cuStreamGetCaptureInfo(device.main, &status, &id, &graph, &dependencies, &count) ==
          CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(id != 0);
  CHECK(count == 1);
  CHECK(dependencies[0] == nodes_of(device, graph).at(0));
  CHECK(api.cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE);  // still being captured
  CUgraph ended = end_capture(device, device.main);
  CHECK(ended == graph);
  CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(device.word(device.x) == 0);  // captured, not run
  CHECK(api.cuGraphDestroy(ended) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(ended) == CUDA_ERROR_INVALID_VALUE);
  begin_capture(device, device.main);
  ended = end_capture(device, device.main);
  CHECK(nodes_of(device, ended).empty());
  CHECK(api.cuGraphDestroy(ended) == CUDA_SUCCESS);
}

TEST_CASE("sim capture: events fork into other streams and join them again") {
  Fork device;
  const DriverApi& api = device.api;
  const CUevent joined = device.event();
  begin_capture(device, device.main);
  REQUIRE(device.push(device.main, device.x, 1) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(device.mark, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamWaitEvent(device.side, device.mark, 0) == CUDA_SUCCESS);
  CHECK(capture_status(device, device.side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE(device.push(device.side, device.x + 4, 2) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD32Async(device.x, 5, 1, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(joined, device.side) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(api.cuStreamEndCapture(device.side, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  REQUIRE(api.cuStreamWaitEvent(device.main, joined, 0) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyDtoDAsync(device.x, device.x + 4, 4, device.main) == CUDA_SUCCESS);
  graph = end_capture(device, device.main);
  CHECK(capture_status(device, device.side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(types_of(device, graph) == std::vector{CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL,
                                               CU_GRAPH_NODE_TYPE_MEMSET,
                                               CU_GRAPH_NODE_TYPE_MEMCPY});
  const auto nodes = nodes_of(device, graph);
  CHECK(dependencies_of(device, nodes[0]).empty());
  CHECK(dependencies_of(device, nodes[1]) == std::vector{nodes[0]});
  CHECK(dependencies_of(device, nodes[2]) == std::vector{nodes[0]});
  CHECK(dependencies_of(device, nodes[3]) == std::vector{nodes[2], nodes[1]});
  std::size_t roots = 0;
  CHECK(api.cuGraphGetRootNodes(graph, nullptr, &roots) == CUDA_SUCCESS);
  CHECK(roots == 1);
  // The events were recorded in a capture that is over.
  CHECK(api.cuEventQuery(joined) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(api.cuEventSynchronize(joined) == CUDA_ERROR_CAPTURED_EVENT);
  CHECK(api.cuStreamWaitEvent(device.side, joined, 0) == CUDA_ERROR_CAPTURED_EVENT);
  float milliseconds = 0;
  CHECK(api.cuEventElapsedTime(&milliseconds, joined, joined) == CUDA_ERROR_CAPTURED_EVENT);
  REQUIRE(api.cuEventRecord(joined, device.side) == CUDA_SUCCESS);
  CHECK(api.cuEventSynchronize(joined) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(api.cuEventDestroy(joined) == CUDA_SUCCESS);
}

TEST_CASE("sim capture: a fork that is not joined ends the capture without a graph") {
  Fork device;
  const DriverApi& api = device.api;
  begin_capture(device, device.main);
  REQUIRE(api.cuEventRecord(device.mark, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamWaitEvent(device.side, device.mark, 0) == CUDA_SUCCESS);
  REQUIRE(device.push(device.side, device.x, 1) == CUDA_SUCCESS);
  CUgraph graph = reinterpret_cast<CUgraph>(std::uintptr_t{1});
  CHECK(api.cuStreamEndCapture(device.main, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(graph == nullptr);
  CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(capture_status(device, device.side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(device.push(device.side, device.x, 2) == CUDA_SUCCESS);
  CHECK(api.cuStreamSynchronize(device.side) == CUDA_SUCCESS);
  CHECK(device.word(device.x) == 2);
}

TEST_CASE("sim capture: what is captured and what is not must not wait for each other") {
  Fork device;
  const DriverApi& api = device.api;
  CUgraph graph = nullptr;
  SUBCASE("an event recorded outside") {
    REQUIRE(api.cuEventRecord(device.mark, device.side) == CUDA_SUCCESS);
    begin_capture(device, device.main);
    CHECK(api.cuStreamWaitEvent(device.main, device.mark, 0) ==
          CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    CHECK(device.push(device.main, device.x, 1) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(api.cuStreamEndCapture(device.main, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("two captures") {
    begin_capture(device, device.main);
    begin_capture(device, device.side);
    REQUIRE(api.cuEventRecord(device.mark, device.main) == CUDA_SUCCESS);
    CHECK(api.cuStreamWaitEvent(device.side, device.mark, 0) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
    CHECK(api.cuStreamEndCapture(device.side, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(api.cuStreamEndCapture(device.main, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("the default stream and a captured event") {
    begin_capture(device, device.main);
    REQUIRE(api.cuEventRecord(device.mark, device.main) == CUDA_SUCCESS);
    CHECK(api.cuStreamWaitEvent(nullptr, device.mark, 0) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(api.cuStreamEndCapture(device.main, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SUBCASE("an external wait is a node instead") {
    REQUIRE(api.cuEventRecord(device.mark, device.side) == CUDA_SUCCESS);
    begin_capture(device, device.main);
    REQUIRE(api.cuStreamWaitEvent(device.main, device.mark, CU_EVENT_WAIT_EXTERNAL) ==
            CUDA_SUCCESS);
    REQUIRE(api.cuEventRecordWithFlags(device.mark, device.main, CU_EVENT_RECORD_EXTERNAL) ==
            CUDA_SUCCESS);
    graph = end_capture(device, device.main);
    CHECK(types_of(device, graph) ==
          std::vector{CU_GRAPH_NODE_TYPE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_EVENT_RECORD});
    CHECK(api.cuEventSynchronize(device.mark) == CUDA_SUCCESS);
    CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  }
}

TEST_CASE("sim capture: the default stream is out of use while a blocking stream captures") {
  Fork device;
  const DriverApi& api = device.api;
  const CUstream blocking = device.stream(CU_STREAM_DEFAULT);
  CUgraph graph = nullptr;
  auto status = CU_STREAM_CAPTURE_STATUS_NONE;
  begin_capture(device, device.main);
  CHECK(device.push(nullptr, device.x, 1) == CUDA_SUCCESS);  // main does not block
  CHECK(api.cuGraphDestroy(end_capture(device, device.main)) == CUDA_SUCCESS);
  begin_capture(device, blocking);
  CHECK(api.cuStreamIsCapturing(nullptr, &status) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(capture_status(device, blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(device.push(nullptr, device.x, 1) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  CHECK(capture_status(device, blocking) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(api.cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(device.push(nullptr, device.x, 1) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(blocking) == CUDA_SUCCESS);
}

TEST_CASE("sim capture: modes say which threads may make unsafe calls") {
  Fork device;
  const DriverApi& api = device.api;
  struct Row {
    CUstreamCaptureMode capture, own, other;
    CUresult own_result, other_result;
  };
  constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
  constexpr auto kLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  constexpr auto kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  constexpr auto kNo = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  // From the reference of cuThreadExchangeStreamCaptureMode.
  const Row rows[] = {
      {kGlobal, kGlobal, kGlobal, kNo, kNo},
      {kGlobal, kLocal, kLocal, kNo, CUDA_SUCCESS},
      {kGlobal, kRelaxed, kRelaxed, CUDA_SUCCESS, CUDA_SUCCESS},
      {kLocal, kGlobal, kGlobal, kNo, CUDA_SUCCESS},
      {kLocal, kLocal, kLocal, kNo, CUDA_SUCCESS},
      {kLocal, kRelaxed, kGlobal, CUDA_SUCCESS, CUDA_SUCCESS},
      {kRelaxed, kGlobal, kGlobal, CUDA_SUCCESS, CUDA_SUCCESS},
      {kRelaxed, kLocal, kGlobal, CUDA_SUCCESS, CUDA_SUCCESS},
  };
  const auto unsafe = [&](CUstreamCaptureMode mode) {
    CUstreamCaptureMode before = mode;
    REQUIRE(api.cuThreadExchangeStreamCaptureMode(&before) == CUDA_SUCCESS);
    CUdeviceptr address = 0;
    const CUresult result = api.cuMemAlloc(&address, 16);
    REQUIRE(api.cuThreadExchangeStreamCaptureMode(&before) == CUDA_SUCCESS);
    CHECK(before == mode);
    if (result == CUDA_SUCCESS) {
      auto relaxed = kRelaxed;
      api.cuThreadExchangeStreamCaptureMode(&relaxed);
      CHECK(api.cuMemFree(address) == CUDA_SUCCESS);
      api.cuThreadExchangeStreamCaptureMode(&relaxed);
    }
    return result;
  };
  int number = 0;
  for (const Row& row : rows) {
    INFO("row ", number++);
    for (const bool own : {true, false}) {
      begin_capture(device, device.main, row.capture);
      CUresult result = CUDA_SUCCESS;
      if (own) {
        result = unsafe(row.own);
      } else {
        std::thread([&] {
          api.cuCtxSetCurrent(device.context);
          result = unsafe(row.other);
        }).join();
      }
      CHECK(result == (own ? row.own_result : row.other_result));
      CUgraph graph = nullptr;
      const CUresult ended = api.cuStreamEndCapture(device.main, &graph);
      CHECK(ended ==
            (result == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
      if (graph != nullptr) api.cuGraphDestroy(graph);
    }
  }
  auto wrong = static_cast<CUstreamCaptureMode>(7);
  CHECK(api.cuThreadExchangeStreamCaptureMode(&wrong) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuThreadExchangeStreamCaptureMode(nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim capture: only a relaxed capture may be ended by another thread") {
  Fork device;
  const DriverApi& api = device.api;
  const auto end_elsewhere = [&](CUgraph* graph) {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      api.cuCtxSetCurrent(device.context);
      result = api.cuStreamEndCapture(device.main, graph);
    }).join();
    return result;
  };
  CUgraph graph = nullptr;
  begin_capture(device, device.main, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK(end_elsewhere(&graph) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CHECK(capture_status(device, device.main) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(api.cuGraphDestroy(end_capture(device, device.main)) == CUDA_SUCCESS);
  begin_capture(device, device.main, CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(end_elsewhere(&graph) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("sim capture: streams and contexts that go away end their captures") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUstream main = device.stream(), side = device.stream();
  const CUevent mark = device.event();
  begin_capture(device, main);
  REQUIRE(device.push(main, x, 1) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(mark, main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamWaitEvent(side, mark, 0) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(main) == CUDA_SUCCESS);
  CHECK(capture_status(device, side) == CU_STREAM_CAPTURE_STATUS_NONE);
  CUdeviceptr y = 0;
  CHECK(api.cuMemAlloc(&y, 16) == CUDA_SUCCESS);  // nobody captures any more
  begin_capture(device, side, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(api.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(api.cuMemAlloc(&y, 16) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(y) == CUDA_SUCCESS);
  device.module = nullptr;
}
