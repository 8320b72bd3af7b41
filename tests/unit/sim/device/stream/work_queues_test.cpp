// Streams of the simulated driver running apart: waiting, asking, joining, and late errors.
#include "unit/sim/device/stream_fixture.h"

#include <set>
#include <thread>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// A page-locked word.
struct PinnedWord {
  explicit PinnedWord(const CurrentDevice& its_device) : device(its_device) {
    void* memory = nullptr;
    REQUIRE(device.api.cuMemHostAlloc(&memory, 4, 0) == CUDA_SUCCESS);
    value = static_cast<std::uint32_t*>(memory);
    *value = 0;
  }
  ~PinnedWord() { device.api.cuMemFreeHost(value); }
  const CurrentDevice& device;
  std::uint32_t* value = nullptr;
};

}  // namespace

TEST_CASE("sim queue: work waits until somebody waits for it, and asking makes it progress") {
  StreamDevice device;
  const Seeded seeded(3);
  const DriverApi& api = device.api;
  const CUstream stream = device.stream();
  const CUevent event = device.event(CU_EVENT_DEFAULT);
  int calls = 0;
  const CUhostFn increment = [](void* data) { ++*static_cast<int*>(data); };
  for (int i = 0; i < 20; ++i) {
    REQUIRE(api.cuLaunchHostFunc(stream, increment, &calls) == CUDA_SUCCESS);
  }
  REQUIRE(api.cuEventRecord(event, stream) == CUDA_SUCCESS);
  CHECK(calls == 0);
  int not_ready = 0, before = 0;
  for (CUresult result = CUDA_ERROR_NOT_READY; result != CUDA_SUCCESS; ++not_ready) {
    result = not_ready % 2 == 0 ? api.cuStreamQuery(stream) : api.cuEventQuery(event);
    CHECK((result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY));
    if (result == CUDA_ERROR_NOT_READY) CHECK(calls <= 20);
    CHECK(calls >= before);
    before = calls;
    REQUIRE(not_ready < 10000);
  }
  CHECK(not_ready > 5);
  CHECK(calls == 20);
  CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: the same seed gives the same order, other seeds other orders") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUstream a = device.stream(), b = device.stream();
  const auto result = [&](std::uint64_t seed) {
    const Seeded seeded(seed);
    REQUIRE(api.cuMemsetD32(x, 0, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    for (std::uint32_t i = 1; i <= 5; ++i) {
      REQUIRE(device.push(a, x, i) == CUDA_SUCCESS);
      REQUIRE(device.push(b, x, 100 * i) == CUDA_SUCCESS);
    }
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    return device.word(x);
  };
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::uint32_t first = result(seed);
    CHECK(result(seed) == first);
    seen.insert(first);
  }
  CHECK(seen.size() > 20);
  for (const CUstream stream : {a, b}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: blocking streams and the default stream take turns, others do not") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUstream blocking = device.stream(CU_STREAM_DEFAULT), free = device.stream();
  for (const auto& [stream, ordered] :
       {std::pair{blocking, true}, {kStreamPerThread, true}, {free, false}}) {
    std::set<std::uint32_t> seen;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      const Seeded seeded(seed);
      REQUIRE(api.cuMemsetD32(x, 0, 1) == CUDA_SUCCESS);
      REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
      REQUIRE(device.push(stream, x, 1) == CUDA_SUCCESS);
      REQUIRE(device.push(nullptr, x, 2) == CUDA_SUCCESS);
      REQUIRE(device.push(stream, x, 3) == CUDA_SUCCESS);
      REQUIRE(device.push(kStreamLegacy, x, 4) == CUDA_SUCCESS);
      REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
      seen.insert(device.word(x));
    }
    if (ordered) {
      CHECK(seen == std::set<std::uint32_t>{pushed({1, 2, 3, 4})});
    } else {
      CHECK(seen.size() == 6);  // 1 before 3 and 2 before 4: 4! / (2! * 2!)
    }
  }
  for (const CUstream stream : {blocking, free}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: waiting for the default stream waits for blocking streams, not for others") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUstream blocking = device.stream(CU_STREAM_DEFAULT), free = device.stream();
  const CUhostFn set = [](void* data) { *static_cast<int*>(data) = 1; };
  int free_still_waited = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Seeded seeded(seed);
    int of_blocking = 0, of_free = 0;
    REQUIRE(api.cuLaunchHostFunc(blocking, set, &of_blocking) == CUDA_SUCCESS);
    REQUIRE(api.cuLaunchHostFunc(free, set, &of_free) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    CHECK(of_blocking == 1);
    free_still_waited += 1 - of_free;
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(of_free == 1);
  }
  CHECK(free_still_waited > 0);
  for (const CUstream stream : {blocking, free}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: a wait counts from the record of its time; an unrecorded event is done") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(2);
  const CUstream a = device.stream(), b = device.stream();
  const CUevent event = device.event(), unrecorded = device.event();
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Seeded seeded(seed);
    REQUIRE(api.cuMemsetD32(x, 0, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(api.cuStreamWaitEvent(b, unrecorded, 0) == CUDA_SUCCESS);
    REQUIRE(device.push(a, x, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuEventRecord(event, a) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamWaitEvent(b, event, 0) == CUDA_SUCCESS);
    REQUIRE(device.push(a, x, 2) == CUDA_SUCCESS);
    REQUIRE(api.cuEventRecord(event, a) == CUDA_SUCCESS);  // too late for b
    REQUIRE(device.push(b, x, 3) == CUDA_SUCCESS);
    REQUIRE(api.cuEventSynchronize(event) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    seen.insert(device.word(x));
  }
  CHECK(seen == std::set<std::uint32_t>{pushed({1, 2, 3}), pushed({1, 3, 2})});
  for (const CUstream stream : {a, b}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  for (const CUevent one : {event, unrecorded}) CHECK(api.cuEventDestroy(one) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: pageable memory is read and written at the call, page-locked memory later") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUstream stream = device.stream();
  const PinnedWord pinned(device);
  const Seeded seeded(11);
  std::uint32_t pageable = 7, back = 0;
  REQUIRE(api.cuMemcpyHtoDAsync(x, &pageable, 4, stream) == CUDA_SUCCESS);
  pageable = 8;
  REQUIRE(api.cuMemcpyDtoHAsync(&back, x, 4, stream) == CUDA_SUCCESS);
  CHECK(back == 7);
  *pinned.value = 9;
  REQUIRE(api.cuMemcpyHtoDAsync(x, pinned.value, 4, stream) == CUDA_SUCCESS);
  *pinned.value = 10;  // a mistake of the program, which now shows
  REQUIRE(api.cuMemcpyDtoHAsync(&back, x, 4, stream) == CUDA_SUCCESS);
  CHECK(back == 10);
  REQUIRE(device.push(stream, x, 5) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(pinned.value), x, 4, stream) ==
          CUDA_SUCCESS);
  CHECK(*pinned.value == 10);
  REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(*pinned.value == pushed({5}, 10));
  CHECK(api.cuMemcpyHtoDAsync(x, &pageable, 8192, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoDAsync(x, x + 1, 8192, stream) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: what goes wrong shows at the next call that waits, once, with its report") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const CUstream a = device.stream(), b = device.stream();
  const Seeded seeded(5);
  REQUIRE(device.broken(a) == CUDA_SUCCESS);
  REQUIRE(device.push(b, x, 1) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  const Fault report = device.report();
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.kernel == "broken");
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(device.word(x) == 1);
  REQUIRE(device.broken(a) == CUDA_SUCCESS);
  std::uint32_t value = 0;
  CHECK(api.cuMemFree(device.allocate(16)) == CUDA_SUCCESS);  // runs it, but keeps its error
  CHECK(api.cuMemcpyDtoH(&value, x, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(api.cuMemcpyDtoH(&value, x, 4) == CUDA_SUCCESS);
  for (const CUstream stream : {a, b}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: where errors stick, a context is lost until it is reset") {
  for (const bool later : {false, true}) {
    CurrentDevice keeper;
    {
      StreamDevice device;
      const DriverApi& api = device.api;
      if (later) {
        set_schedule_seed(1);
      } else {
        set_schedule_seed(std::nullopt);
      }
      set_sticky_errors(true);
      const CUdeviceptr x = device.allocate(4);
      const CUresult issued = device.broken(nullptr);
      CHECK(issued == (later ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS));
      CHECK(api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
      CHECK(api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
      CHECK(device.push(nullptr, x, 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
      CHECK(api.cuMemFree(x) == CUDA_ERROR_ILLEGAL_ADDRESS);
      CUdeviceptr y = 0;
      CHECK(api.cuMemAlloc(&y, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
      set_sticky_errors(false);
      CHECK(api.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
      CHECK(api.cuMemAlloc(&y, 4) == CUDA_SUCCESS);
      CHECK(api.cuMemFree(y) == CUDA_SUCCESS);
      device.module = nullptr;  // the reset ended it
      Seeded::restore();
    }
  }
}

TEST_CASE("sim queue: streams, events and modules that go away do not take their work along") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(1);
  const Seeded seeded(2);
  const CUstream a = device.stream(), b = device.stream();
  const CUevent event = device.event();
  REQUIRE(device.push(a, x, 1) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(event, a) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamWaitEvent(b, event, 0) == CUDA_SUCCESS);
  REQUIRE(device.push(b, x, 2) == CUDA_SUCCESS);
  CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(a) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(b) == CUDA_SUCCESS);
  CHECK(api.cuStreamSynchronize(a) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuModuleUnload(std::exchange(device.module, nullptr)) == CUDA_SUCCESS);
  CHECK(device.push(nullptr, x, 3) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(device.word(x) == pushed({1, 2}));
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: memory is freed in the stream's turn; freed memory is found, and reused") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUstream a = device.stream(), b = device.stream();
  const Seeded seeded(4);
  CUdeviceptr x = 0;
  REQUIRE(api.cuMemAllocAsync(&x, 4, a) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD32Async(x, 6, 1, a) == CUDA_SUCCESS);
  REQUIRE(device.push(a, x, 1) == CUDA_SUCCESS);
  REQUIRE(api.cuMemFreeAsync(x, a) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeAsync(x, b) == CUDA_ERROR_INVALID_VALUE);
  CHECK(device.report().message.find("cuMemFreeAsync") != std::string::npos);
  CHECK(api.cuMemFree(x) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuStreamSynchronize(a) == CUDA_SUCCESS);
  REQUIRE(device.push(a, x, 1) == CUDA_SUCCESS);
  CHECK(api.cuStreamSynchronize(a) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(device.report().kind == FaultKind::use_after_free);
  // Memory waiting to be freed counts as free: five times the device's memory goes through.
  std::size_t free_bytes = 0, total = 0;
  REQUIRE(api.cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS);
  const std::size_t bytes = free_bytes / 2 + (1 << 20);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(api.cuMemAllocAsync(&x, bytes, a) == CUDA_SUCCESS);
    REQUIRE(api.cuMemFreeAsync(x, a) == CUDA_SUCCESS);
  }
  CHECK(api.cuStreamSynchronize(a) == CUDA_SUCCESS);
  for (const CUstream stream : {a, b}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: event times follow the order in which work ran") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUstream stream = device.stream();
  const CUevent start = device.event(CU_EVENT_DEFAULT), end = device.event(CU_EVENT_DEFAULT);
  const Seeded seeded(6);
  REQUIRE(api.cuEventRecord(start, stream) == CUDA_SUCCESS);
  const CUhostFn nap = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  REQUIRE(api.cuLaunchHostFunc(stream, nap, nullptr) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecord(end, stream) == CUDA_SUCCESS);
  float milliseconds = 0;
  CHECK(api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_NOT_READY);
  REQUIRE(api.cuEventSynchronize(end) == CUDA_SUCCESS);
  CHECK(api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 3.0f);
  for (const CUevent event : {start, end}) CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: a host function may not call the driver") {
  StreamDevice device;
  struct State {
    const DriverApi* api;
    CUresult codes[5];
  } state{&device.api, {}};
  const CUhostFn function = [](void* data) {
    auto& s = *static_cast<State*>(data);
    CUdeviceptr address = 0;
    CUevent event = nullptr;
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    s.codes[0] = s.api->cuMemAlloc(&address, 16);
    s.codes[1] = s.api->cuEventCreate(&event, 0);
    s.codes[2] = s.api->cuStreamCreate(&stream, 0);
    s.codes[3] = s.api->cuCtxGetCurrent(&context);
    s.codes[4] = s.api->cuStreamSynchronize(nullptr);
  };
  REQUIRE(device.api.cuLaunchHostFunc(nullptr, function, &state) == CUDA_SUCCESS);
  REQUIRE(device.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  for (const CUresult code : state.codes) CHECK(code == CUDA_ERROR_NOT_PERMITTED);
  CHECK(device.api.cuStreamQuery(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("sim queue: so much work waits at most, and threads may wait for each other's") {
  StreamDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr x = device.words(4);
  const Seeded seeded(9);
  const CUstream stream = device.stream();
  static std::atomic<int> calls;
  calls = 0;
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(api.cuLaunchHostFunc(
                stream, [](void*) { ++calls; }, nullptr) == CUDA_SUCCESS);
  }
  CHECK(calls >= 5000 - 1024);
  CHECK(calls < 5000);
  REQUIRE(api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(calls == 5000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      api.cuCtxSetCurrent(device.context);
      for (int i = 0; i < 50; ++i) {
        wrong += device.push(kStreamPerThread, x + 4 * t, 1) != CUDA_SUCCESS;
        if (i % 5 == 0) wrong += api.cuStreamSynchronize(kStreamPerThread) != CUDA_SUCCESS;
      }
      wrong += api.cuCtxSynchronize() != CUDA_SUCCESS;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  std::uint32_t expected = 0;
  for (int i = 0; i < 50; ++i) expected = expected * 31 + 1;
  CHECK(device.download<std::uint32_t>(x, 4) == std::vector<std::uint32_t>(4, expected));
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}
