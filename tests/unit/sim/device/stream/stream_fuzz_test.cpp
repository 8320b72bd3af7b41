// Random calls on streams, events, captures, graphs and memory, from several threads: the driver
// could give every answer, nothing hangs, and nothing is left behind.
#include "unit/sim/device/capture_fixture.h"

#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

const std::set<CUresult> kExpected{CUDA_SUCCESS,
                                   CUDA_ERROR_INVALID_VALUE,
                                   CUDA_ERROR_INVALID_HANDLE,
                                   CUDA_ERROR_ILLEGAL_STATE,
                                   CUDA_ERROR_NOT_READY,
                                   CUDA_ERROR_NOT_SUPPORTED,
                                   CUDA_ERROR_ILLEGAL_ADDRESS,
                                   CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
                                   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                   CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                   CUDA_ERROR_STREAM_CAPTURE_MERGE,
                                   CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                   CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                                   CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                   CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                   CUDA_ERROR_CAPTURED_EVENT,
                                   CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD};

/// One thread's calls, on objects shared by all threads.
class Caller {
 public:
  Caller(const StreamDevice& device, CUdeviceptr x, std::vector<CUstream> streams,
         std::vector<CUevent> events, unsigned seed)
      : device_(device),
        x_(x),
        streams_(std::move(streams)),
        events_(std::move(events)),
        random_(seed) {}

  void run(int steps) {
    device_.api.cuCtxSetCurrent(device_.context);
    for (int i = 0; i < steps; ++i) {
      const CUresult result = step();
      if (kExpected.count(result) == 0) unexpected.push_back(result);
      seen.insert(result);
    }
  }
  /// Leaves no capture, graph or memory of this thread behind.
  void finish() {
    const DriverApi& api = device_.api;
    for (const CUstream stream : streams_) {
      CUgraph graph = nullptr;
      if (api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS) api.cuGraphDestroy(graph);
    }
    for (const CUgraphExec executable : executables_) api.cuGraphExecDestroy(executable);
    for (const CUgraph graph : graphs_) api.cuGraphDestroy(graph);
    api.cuCtxSynchronize();
    for (const CUdeviceptr address : memory_) api.cuMemFree(address);
  }

  std::vector<CUresult> unexpected;
  std::set<CUresult> seen;

 private:
  unsigned below(std::size_t n) { return static_cast<unsigned>(random_() % n); }
  CUstream stream() { return streams_[below(streams_.size())]; }
  CUevent event() { return events_[below(events_.size())]; }
  template <typename T>
  T any(const std::vector<T>& of) {
    return of.empty() ? T{} : of[below(of.size())];
  }

  CUresult step() {
    const DriverApi& api = device_.api;
    switch (below(24)) {
      case 0:
      case 1:
      case 2:
        return device_.push(stream(), x_ + 4 * below(16), below(100));
      case 3:
        return api.cuMemcpyDtoDAsync(x_ + 4 * below(8), x_ + 32 + 4 * below(8), 4, stream());
      case 4:
        return api.cuMemsetD32Async(x_, 1, below(16), stream());
      case 5:
      case 6:
        return api.cuEventRecordWithFlags(event(), stream(), below(8) == 0);
      case 7:
      case 8:
        return api.cuStreamWaitEvent(stream(), event(), below(8) == 0);
      case 9:
        return api.cuStreamQuery(stream());
      case 10:
        return below(4) == 0 ? api.cuStreamSynchronize(stream()) : api.cuEventQuery(event());
      case 11:
        return below(8) == 0 ? api.cuCtxSynchronize() : api.cuEventSynchronize(event());
      case 12:
      case 13:
        return api.cuStreamBeginCapture(stream(), static_cast<CUstreamCaptureMode>(below(3)));
      case 14:
      case 15:
      case 16:
        return end_capture();
      case 17:
        return instantiate();
      case 18:
        return api.cuGraphLaunch(any(executables_), stream());
      case 19: {
        CUgraphExecUpdateResultInfo info{};
        return api.cuGraphExecUpdate(any(executables_), any(graphs_), &info);
      }
      case 20:
        return api.cuLaunchHostFunc(
            stream(), [](void*) {}, nullptr);
      case 21:
        return allocate();
      case 22:
        return free();
      default: {
        std::uint32_t word = 0;
        return below(2) == 0 ? api.cuMemcpyDtoHAsync(&host_, x_, 4, stream())
                             : api.cuMemcpyHtoDAsync(x_, &word, 4, nullptr);
      }
    }
  }

  CUresult end_capture() {
    CUgraph graph = nullptr;
    const CUresult result = device_.api.cuStreamEndCapture(stream(), &graph);
    if (graph != nullptr) graphs_.push_back(graph);
    if (graphs_.size() > 6) {
      device_.api.cuGraphDestroy(graphs_.front());
      graphs_.erase(graphs_.begin());
    }
    return result;
  }
  CUresult instantiate() {
    CUgraphExec executable = nullptr;
    const CUresult result =
        device_.api.cuGraphInstantiateWithFlags(&executable, any(graphs_), below(2));
    if (executable != nullptr) executables_.push_back(executable);
    if (executables_.size() > 6) {
      device_.api.cuGraphExecDestroy(executables_.front());
      executables_.erase(executables_.begin());
    }
    return result;
  }
  CUresult allocate() {
    CUdeviceptr address = 0;
    const CUresult result = device_.api.cuMemAllocAsync(&address, 64, stream());
    if (result == CUDA_SUCCESS) memory_.push_back(address);
    return result;
  }
  CUresult free() {
    if (memory_.empty()) return CUDA_SUCCESS;
    const std::size_t index = below(memory_.size());
    const CUresult result = device_.api.cuMemFreeAsync(memory_[index], stream());
    if (result == CUDA_SUCCESS) {
      memory_.erase(memory_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    return result;
  }

  const StreamDevice& device_;
  CUdeviceptr x_;
  std::vector<CUstream> streams_;
  std::vector<CUevent> events_;
  std::mt19937 random_;
  std::vector<CUgraph> graphs_;
  std::vector<CUgraphExec> executables_;
  std::vector<CUdeviceptr> memory_;
  std::uint32_t host_ = 0;
};

/// `threads` callers at once; bytes of the device still in use afterwards.
std::size_t left_behind(int threads, unsigned round, std::set<CUresult>& seen) {
  StreamDevice device;
  const DriverApi& api = device.api;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(api.cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
  const CUdeviceptr x = device.words(16);
  std::vector<CUstream> streams{nullptr, kStreamPerThread, device.stream(CU_STREAM_DEFAULT)};
  for (int i = 0; i < 3; ++i) streams.push_back(device.stream());
  std::vector<CUevent> events;
  for (int i = 0; i < 4; ++i) events.push_back(device.event());
  std::vector<std::unique_ptr<Caller>> callers;
  for (int t = 0; t < threads; ++t) {
    callers.push_back(std::make_unique<Caller>(device, x, streams, events,
                                               round * 16 + static_cast<unsigned>(t)));
  }
  std::vector<std::thread> running;
  for (auto& caller : callers) {
    running.emplace_back([&caller] {
      caller->run(8000);
      caller->finish();  // a capture may only be ended by the thread of its beginning
    });
  }
  for (auto& thread : running) thread.join();
  for (auto& caller : callers) {
    CHECK(caller->unexpected.empty());
    seen.insert(caller->seen.begin(), caller->seen.end());
    caller->finish();
  }
  for (const CUstream stream : streams) {
    if (stream != nullptr && stream != kStreamPerThread) {
      CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
    }
  }
  for (const CUevent event : events) CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  api.cuCtxSynchronize();
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(api.cuMemGetInfo(&after, &total) == CUDA_SUCCESS);
  return before - after;
}

}  // namespace

TEST_CASE("sim streams: random calls from several threads hang nowhere and leave nothing behind") {
  std::set<CUresult> seen, by_chance;  // of one thread, where every run is the same, and of several
  for (unsigned round = 0; round < 12; ++round) {
    INFO("round ", round);
    std::optional<Seeded> seeded;
    std::optional<InIssueOrder> eager;
    if (round % 3 != 0) {
      seeded.emplace(round);
    } else {
      eager.emplace();
    }
    std::set<CUresult>& results = round % 2 == 0 ? seen : by_chance;
    CHECK(left_behind(round % 2 == 0 ? 1 : 3, round, results) == 0);
  }
  // The calls came far: into every state of a capture.
  for (const CUresult result :
       {CUDA_SUCCESS, CUDA_ERROR_ILLEGAL_STATE, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
        CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_CAPTURED_EVENT,
        CUDA_ERROR_STREAM_CAPTURE_MERGE}) {
    INFO("result ", static_cast<int>(result));
    CHECK(seen.count(result) == 1);
  }
}
