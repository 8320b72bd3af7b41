// The check of order between streams: every missing event is found, whatever ran first, and
// correct programs have no finding.
#include "driver/order_scope.h"
#include "unit/sim/device/capture_fixture.h"

#include <array>
#include <random>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// The check is on while this lives, in issue order or under a seed.
struct Checked : StreamDevice {
  explicit Checked(std::optional<std::uint64_t> seed = std::nullopt)
      : a(stream()), b(stream()), mark(event()), x(words(64)) {
    set_schedule_seed(seed);
    set_stream_checks(true);
  }
  ~Checked() {
    set_stream_checks(false);
    Seeded::restore();
    api.cuCtxSynchronize();
    for (const CUstream one : {a, b}) api.cuStreamDestroy(one);
    api.cuEventDestroy(mark);
    api.cuMemFree(x);
  }
  /// Waits for everything; the finding's kind.
  FaultKind finding(CUresult issued = CUDA_SUCCESS) {
    if (issued == CUDA_SUCCESS) issued = api.cuCtxSynchronize();
    if (issued == CUDA_SUCCESS) return FaultKind::none;
    last = report();
    CHECK(issued == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
    return last.kind;
  }
  void order() {
    REQUIRE(api.cuEventRecord(mark, a) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamWaitEvent(b, mark, 0) == CUDA_SUCCESS);
  }
  CUstream a, b;
  CUevent mark;
  CUdeviceptr x;
  Fault last;
};

std::vector<std::optional<std::uint64_t>> schedules() { return {std::nullopt, 1, 2, 3, 4}; }

bool mentions(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("stream order: kernels on two streams need an event between them") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    REQUIRE(device.push(device.a, device.x, 1) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.b, device.x, 2)) == FaultKind::race);
    CHECK(mentions(device.last.message, "kernel push on stream"));
    CHECK(mentions(device.last.message, "4 bytes"));
    CHECK(device.last.kernel == "push");
    CHECK(device.last.address == device.x);
    CHECK(device.last.access_size == 4);
    CHECK(mentions(device.last.details, "writes 4 bytes"));
    CHECK(mentions(device.last.allocation, "256 bytes"));
    REQUIRE(device.push(device.a, device.x, 1) == CUDA_SUCCESS);
    device.order();
    CHECK(device.finding(device.push(device.b, device.x, 2)) == FaultKind::none);
    REQUIRE(device.push(device.b, device.x, 1) == CUDA_SUCCESS);
    REQUIRE(device.api.cuStreamSynchronize(device.b) == CUDA_SUCCESS);  // the host orders too
    CHECK(device.finding(device.push(device.a, device.x, 2)) == FaultKind::none);
  }
}

TEST_CASE("stream order: copies, fills and kernels, reading and writing, byte by byte") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const DriverApi& api = device.api;
    const CUdeviceptr y = device.words(64);
    // Both read: fine. Different bytes of one allocation: fine. Both atomic: fine.
    REQUIRE(api.cuMemcpyDtoDAsync(y, device.x, 64, device.a) == CUDA_SUCCESS);
    CHECK(device.finding(api.cuMemcpyDtoDAsync(y + 64, device.x, 64, device.b)) == FaultKind::none);
    REQUIRE(device.each(device.a, device.x, 1, 16) == CUDA_SUCCESS);
    CHECK(device.finding(device.each(device.b, device.x + 64, 2, 32)) == FaultKind::none);
    REQUIRE(device.count(device.a, device.x) == CUDA_SUCCESS);
    CHECK(device.finding(device.count(device.b, device.x)) == FaultKind::none);
    CHECK(device.word(device.x) == 1 + 2 * 64);
    // One byte in common is enough.
    REQUIRE(device.each(device.a, device.x, 1, 16) == CUDA_SUCCESS);
    CHECK(device.finding(api.cuMemsetD8Async(device.x + 63, 0, 65, device.b)) == FaultKind::race);
    CHECK(device.last.access_size == 1);
    CHECK(device.last.address == device.x + 63);
    CHECK(mentions(device.last.message, "cuMemsetD8Async"));
    REQUIRE(api.cuMemcpyDtoDAsync(y, device.x, 64, device.a) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.b, device.x, 2)) == FaultKind::race);
    REQUIRE(device.count(device.a, device.x) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.b, device.x, 2)) == FaultKind::race);
    CHECK(device.finding() == FaultKind::none);
    REQUIRE(api.cuMemFree(y) == CUDA_SUCCESS);
  }
}

TEST_CASE("stream order: an order may meet reads and atomic operations at its word, no writes") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const DriverApi& api = device.api;
    const CUdeviceptr y = device.words(64);
    const std::array<std::uint32_t, 2> ones{1, 1};
    const auto copy = [&](std::size_t bytes) {
      return api.cuMemcpyHtoDAsync(device.x, ones.data(), bytes, device.b);
    };
    const auto send = [&] {
      const OrderScope scope;
      return copy(4);
    };
    REQUIRE(device.count(device.a, device.x) == CUDA_SUCCESS);
    CHECK(device.finding(send()) == FaultKind::none);
    REQUIRE(api.cuMemcpyDtoDAsync(y, device.x, 64, device.a) == CUDA_SUCCESS);
    CHECK(device.finding(send()) == FaultKind::none);
    REQUIRE(send() == CUDA_SUCCESS);
    CHECK(device.finding(device.count(device.a, device.x)) == FaultKind::none);
    // Another writer of the word, and other copies on the stream of orders.
    REQUIRE(device.push(device.a, device.x, 1) == CUDA_SUCCESS);
    CHECK(device.finding(send()) == FaultKind::race);
    for (const std::size_t bytes : {4, 8}) {
      REQUIRE(device.count(device.a, device.x) == CUDA_SUCCESS);
      CHECK(device.finding(copy(bytes)) == FaultKind::race);
    }
    CHECK(device.finding() == FaultKind::none);
    REQUIRE(api.cuMemFree(y) == CUDA_SUCCESS);
  }
}

TEST_CASE("stream order: the default stream orders blocking streams, not the others") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const CUstream blocking = device.stream(CU_STREAM_DEFAULT);
    REQUIRE(device.push(blocking, device.x, 1) == CUDA_SUCCESS);
    REQUIRE(device.push(nullptr, device.x, 2) == CUDA_SUCCESS);
    REQUIRE(device.push(kStreamPerThread, device.x, 3) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(nullptr, device.x, 4)) == FaultKind::none);
    REQUIRE(device.push(nullptr, device.x, 1) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.a, device.x, 2)) == FaultKind::race);
    CHECK(mentions(device.last.message, "the default stream"));
    REQUIRE(device.push(blocking, device.x, 1) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(kStreamPerThread, device.x, 2)) == FaultKind::race);
    CHECK(device.api.cuStreamDestroy(blocking) == CUDA_SUCCESS);
  }
}

TEST_CASE("stream order: a copy from pageable memory may land after the call") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const std::uint32_t value = 3;
    REQUIRE(device.api.cuMemcpyHtoD(device.x, &value, 4) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.a, device.x, 2)) == FaultKind::race);
    REQUIRE(device.api.cuMemcpyHtoD(device.x, &value, 4) == CUDA_SUCCESS);
    REQUIRE(device.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.a, device.x, 2)) == FaultKind::none);
    std::uint32_t back = 0;
    REQUIRE(device.api.cuMemcpyDtoH(&back, device.x, 4) == CUDA_SUCCESS);
    CHECK(back == pushed({2}, 3));
    CHECK(device.finding(device.push(device.b, device.x, 2)) == FaultKind::none);
  }
}

TEST_CASE("stream order: memory freed while another stream uses it is found either way") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const DriverApi& api = device.api;
    CUdeviceptr y = 0;
    // Used without waiting for the allocation.
    REQUIRE(api.cuMemAllocAsync(&y, 4, device.a) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.b, y, 1)) == FaultKind::race);
    CHECK(mentions(device.last.details, "allocates"));
    // Freed without waiting for the use.
    REQUIRE(device.push(device.b, y, 1) == CUDA_SUCCESS);
    CUresult result = api.cuMemFreeAsync(y, device.a);
    if (result == CUDA_SUCCESS) result = api.cuCtxSynchronize();
    const Fault report = device.report();
    CHECK((report.kind == FaultKind::race || report.kind == FaultKind::use_after_free));
    CHECK(result != CUDA_SUCCESS);
    api.cuCtxSynchronize();
    // In order, with events.
    REQUIRE(api.cuMemAllocAsync(&y, 4, device.a) == CUDA_SUCCESS);
    device.order();
    REQUIRE(device.push(device.b, y, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuEventRecord(device.mark, device.b) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamWaitEvent(device.a, device.mark, 0) == CUDA_SUCCESS);
    CHECK(device.finding(api.cuMemFreeAsync(y, device.a)) == FaultKind::none);
  }
}

TEST_CASE("stream order: graphs as a whole, and their branches among themselves") {
  for (const auto seed : schedules()) {
    Checked device(seed);
    const DriverApi& api = device.api;
    const auto branches = [&](CUdeviceptr left, CUdeviceptr right) {
      const CUevent joined = device.event();
      begin_capture(device, device.a);
      device.order();
      REQUIRE(device.push(device.a, left, 1) == CUDA_SUCCESS);
      REQUIRE(device.push(device.b, right, 2) == CUDA_SUCCESS);
      REQUIRE(api.cuEventRecord(joined, device.b) == CUDA_SUCCESS);
      REQUIRE(api.cuStreamWaitEvent(device.a, joined, 0) == CUDA_SUCCESS);
      const CUgraph graph = end_capture(device, device.a);
      const CUgraphExec executable = instantiate(device, graph);
      api.cuGraphDestroy(graph);
      api.cuEventDestroy(joined);
      return executable;
    };
    const CUgraphExec apart = branches(device.x, device.x + 4);
    const CUgraphExec racing = branches(device.x, device.x);
    CHECK(device.finding(api.cuGraphLaunch(apart, device.a)) == FaultKind::none);
    CHECK(device.finding(api.cuGraphLaunch(racing, device.a)) == FaultKind::race);
    CHECK(mentions(device.last.message, "node 0 of a graph"));
    REQUIRE(api.cuGraphLaunch(apart, device.a) == CUDA_SUCCESS);
    CHECK(device.finding(device.push(device.b, device.x + 4, 1)) == FaultKind::race);
    for (const CUgraphExec one : {apart, racing}) api.cuGraphExecDestroy(one);
  }
}

TEST_CASE("stream order: random programs, against reachability over their edges") {
  std::mt19937 random(99);
  int racing = 0, clean = 0;
  for (int round = 0; round < 300; ++round) {
    struct Step {
      int stream, word;
      bool reads;
    };
    std::vector<Step> steps;
    std::vector<unsigned> before;  // work that surely happened before, one bit each
    unsigned of_stream[2] = {}, of_event = 0, of_host = 0;
    bool expected = false;
    std::optional<std::uint64_t> seed;
    if (round % 3 != 0) seed = static_cast<std::uint64_t>(round);
    Checked device(seed);
    const CUstream streams[] = {device.a, device.b};
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < 12 && result == CUDA_SUCCESS; ++i) {
      const int stream = static_cast<int>(random() % 2);
      unsigned& known = of_stream[stream];
      switch (random() % 5) {
        case 0:
          result = device.api.cuEventRecord(device.mark, streams[stream]);
          of_event = known | of_host;
          break;
        case 1:
          result = device.api.cuStreamWaitEvent(streams[stream], device.mark, 0);
          known |= of_event;
          break;
        case 2:
          if (random() % 4 != 0) break;
          result = device.api.cuStreamSynchronize(streams[stream]);
          of_host |= known;
          break;
        default: {
          const Step step{stream, static_cast<int>(random() % 4), random() % 2 == 0};
          const CUdeviceptr word = device.x + 4 * static_cast<unsigned>(step.word);
          const CUdeviceptr own = device.x + 64 + 4 * static_cast<unsigned>(i);
          const unsigned order = known | of_host;
          for (std::size_t j = 0; j < steps.size(); ++j) {
            if (steps[j].word != step.word || (steps[j].reads && step.reads)) continue;
            expected |= (order >> j & 1) == 0;
          }
          known |= of_host | 1u << steps.size();
          steps.push_back(step);
          result = step.reads ? device.api.cuMemcpyDtoDAsync(own, word, 4, streams[stream])
                              : device.push(streams[stream], word, 1);
        }
      }
    }
    INFO("program ", round);
    // A finding may come with any of the calls; it must come, and only where one is due.
    CHECK((device.finding(result) == FaultKind::race) == expected);
    ++(expected ? racing : clean);
  }
  CHECK(racing > 50);
  CHECK(clean > 50);
}
