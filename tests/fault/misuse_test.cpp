// Things used on another device, while empty, or in a forked child: a typed error before the driver
// sees anything, and the next call works.
#include "array/array.h"
#include "base/errors.h"
#include "core/event.h"
#include "core/graph/graph.h"
#include "core/lifecycle.h"
#include "fault/fault_fixture.h"
#include "memory/buffer.h"
#include "memory/memory_resource.h"
#include "memory/transfer.h"
#include "unit/core/saxpy.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

using Use = std::function<void()>;

struct Misuse {
  const char* name;
  Use use;
};

/// A device of its own for each side of a mix-up.
struct TwoDevices {
  TwoDevices()
      : registry(new_registry(Seen::as_gpu)),
        here(registry.by_index(0)),
        there(registry.by_index(1)),
        stream(Stream::create(here)),
        foreign(Stream::create(there)),
        event(here),
        kernel(load_saxpy(here)),
        array(Array::empty(here, {64}, ScalarType::float32)) {}

  void launch(const LaunchConfig& config) {
    float a = 1;
    int n = 64;
    CUdeviceptr x = array.address();
    void* arguments[] = {&a, &x, &x, &n};
    kernel.launch(config, arguments);
  }

  DeviceRegistry& registry;
  Device &here, &there;
  Stream stream, foreign;
  Event event;
  Kernel kernel;
  Array array;
  char host[256] = {};
};

/// Each one throws Exception, calls the driver for nothing but queries, and leaves the current
/// context alone.
template <typename Exception>
void check_refused(const std::vector<Misuse>& list) {
  const CUcontext before = current_context();
  for (const Misuse& misuse : list) {
    CAPTURE(misuse.name);
    const std::uint64_t work = faults().calls("cuLaunchKernelEx") + faults().calls("cuMemAlloc") +
                               faults().calls("cuMemAllocAsync") + faults().calls("cuEventRecord") +
                               faults().calls("cuMemcpyHtoD") +
                               faults().calls("cuMemcpyHtoDAsync") +
                               faults().calls("cuStreamBeginCapture");
    CHECK_THROWS_AS(misuse.use(), Exception);
    CHECK(faults().calls("cuLaunchKernelEx") + faults().calls("cuMemAlloc") +
              faults().calls("cuMemAllocAsync") + faults().calls("cuEventRecord") +
              faults().calls("cuMemcpyHtoD") + faults().calls("cuMemcpyHtoDAsync") +
              faults().calls("cuStreamBeginCapture") ==
          work);
    CHECK(current_context() == before);
  }
}

}  // namespace

TEST_CASE("misuse: things of another device are refused by name") {
  TwoDevices it;
  const CUdeviceptr address = it.array.address();
  Graph graph(it.here);
  check_refused<InvalidArgument>({
      {"event.record", [&] { it.event.record(it.foreign); }},
      {"stream.record", [&] { it.foreign.record(it.event); }},
      {"event.elapsed_ms", [&] { (void)it.event.elapsed_ms(Event(it.there)); }},
      {"launch", [&] { it.launch({.grid = {1}, .block = {64}, .stream = it.foreign}); }},
      {"check", [&] { it.kernel.check({.grid = {1}, .block = {64}, .stream = it.foreign}); }},
      {"buffer", [&] { const Buffer made(default_resource(it.here), 64, it.foreign); }},
      {"plain buffer",
       [&] { const Buffer made(std::make_shared<DeviceResource>(it.here), 64, it.foreign); }},
      {"array", [&] { Array::empty(it.here, {4}, ScalarType::int8, it.foreign); }},
      {"copy_to_device", [&] { copy_to_device(it.here, address, it.host, 64, it.foreign); }},
      {"copy_to_host", [&] { copy_to_host(it.here, it.host, address, 64, it.foreign); }},
      {"copy_on_device", [&] { copy_on_device(it.here, address, address, 64, it.foreign); }},
      {"fill", [&] { fill(it.here, address, 0, 4, 16, it.foreign); }},
      {"resource", [&] { set_default_resource(it.here, default_resource(it.there)); }},
      {"capture", [&] { graph.begin_capture(it.foreign); }},
  });
  CHECK_NOTHROW(it.launch({.grid = {1}, .block = {64}, .stream = it.stream}));
  CHECK_NOTHROW(it.here.synchronize());
}

TEST_CASE("misuse: empty things, sizes and times that make no sense") {
  TwoDevices it;
  const CUdeviceptr address = it.array.address();
  const Stream none;
  const std::size_t huge = std::numeric_limits<std::size_t>::max();
  check_refused<InvalidArgument>({
      {"device of no stream", [&] { (void)none.device(); }},
      {"synchronize no stream", [&] { none.synchronize(); }},
      {"query no stream", [&] { (void)none.done(); }},
      {"record on no stream", [&] { (void)none.record(); }},
      {"wait on no stream", [&] { none.wait(it.event); }},
      {"device of no array", [&] { (void)Array().device(); }},
      {"a buffer above 2^63", [&] { const Buffer made(default_resource(it.here), huge, {}); }},
      {"elements of 3 bytes", [&] { fill(it.here, address, 0, 3, 16); }},
      {"fill at an odd address", [&] { fill(it.here, address + 1, 0, 4, 16); }},
      {"fill above 2^64", [&] { fill(it.here, address, 0, 8, huge / 2); }},
      {"a negative extent", [&] { Array::empty(it.here, {-1}, ScalarType::int8); }},
      {"an empty image", [&] { Module::load(it.here, ""); }},
  });
  check_refused<LaunchConfigError>({
      {"no block", [&] { it.launch({.grid = {0}, .block = {64}}); }},
      {"no thread", [&] { it.launch({.grid = {1}, .block = {0}}); }},
      {"too many threads", [&] { it.launch({.grid = {1}, .block = {1025}}); }},
      {"too much shared memory",
       [&] { it.launch({.grid = {1}, .block = {64}, .shared_bytes = 1U << 30}); }},
  });
  check_refused<ArgumentError>(
      {{"too few arguments", [&] { it.kernel.launch({.grid = {1}, .block = {64}}, {}); }}});
  check_refused<Error>({{"a graph without a capture", [&] { Graph(it.here).launch(it.stream); }},
                        {"an end without a capture", [&] { Graph(it.here).end_capture(); }}});
  CHECK_NOTHROW(copy_to_host(it.here, it.host, address, 0));
  CHECK_NOTHROW(it.launch({.grid = {1}, .block = {64}}));
  CHECK_NOTHROW(it.here.synchronize());
}

TEST_CASE("misuse: a forked child is told so at every call, and its destructors do nothing") {
  watch_process();
  auto things = std::make_unique<TwoDevices>();
  const std::vector<Misuse> uses = {
      {"synchronize", [&] { things->here.synchronize(); }},
      {"stream", [&] { Stream::create(things->here); }},
      {"stream.synchronize", [&] { things->stream.synchronize(); }},
      {"stream.done", [&] { (void)things->stream.done(); }},
      {"event", [&] { const Event made(things->here); }},
      {"event.record", [&] { things->event.record(things->stream); }},
      {"launch", [&] { things->launch({.grid = {1}, .block = {64}}); }},
      {"module", [&] { Module::load(things->here, kSaxpyPtx); }},
      {"array", [&] { Array::empty(things->here, {4}, ScalarType::int8); }},
      {"to_host", [&] { things->array.to_host(things->host); }},
      {"pinned", [&] { const PinnedBuffer made(things->here, 64); }},
      {"graph", [&] { Graph(things->here).begin_capture(things->stream); }},
      {"reset", [&] { things->here.reset(); }},
  };
  std::fflush(nullptr);  // else the child writes the buffered text once more
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t calls = faults().calls();
    int number = 0;
    for (const Misuse& misuse : uses) {
      ++number;
      try {
        misuse.use();
        _exit(number);
      } catch (const Error& error) {
        if (std::string(error.what()).find("fork()") == std::string::npos) _exit(100 + number);
      }
    }
    things.reset();
    _exit(faults().calls() == calls ? 0 : 99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_NOTHROW(things->here.synchronize());
}
