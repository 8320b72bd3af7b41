// Graphs on the device under test: results, memory given back, and the order of forks.
#include "core/graph/graph.h"

#include "base/errors.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <optional>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

/// x[i] = x[i] * a + b for the 32 threads of a block.
constexpr const char* kAffine = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry affine(
	.param .u64 affine_param_0,
	.param .s32 affine_param_1,
	.param .s32 affine_param_2
)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [affine_param_0];
	ld.param.s32 %r1, [affine_param_1];
	ld.param.s32 %r2, [affine_param_2];
	mov.u32 %r3, %tid.x;
	cvta.to.global.u64 %rd2, %rd1;
	mul.wide.u32 %rd3, %r3, 4;
	add.s64 %rd4, %rd2, %rd3;
	ld.global.s32 %r4, [%rd4];
	mad.lo.s32 %r5, %r4, %r1, %r2;
	st.global.s32 [%rd4], %r5;
	ret;
}
)";

Kernel affine(Device& device) {
  KernelSignature signature{.name = "affine", .lowered = "affine", .parameters = {}};
  signature.parameters = {
      {.name = "x", .type = "int*", .kind = ParameterKind::pointer},
      {.name = "a", .type = "int", .scalar = ScalarType::int32},
      {.name = "b", .type = "int", .scalar = ScalarType::int32},
  };
  return {Module::load(device, kAffine), signature};
}

/// 32 ints of device memory, zero at first.
struct Ints {
  explicit Ints(Device& d) : device(d) {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemAlloc(&address, 128), "cuMemAlloc");
    device.check(device.driver().cuMemsetD32(address, 0, 32), "cuMemsetD32");
    Stream::legacy(device).synchronize();
  }
  ~Ints() {
    ReleaseGuard guard(device);
    if (guard) guard.report(device.driver().cuMemFree(address), "cuMemFree");
  }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  int read(const Stream& stream) const {
    stream.synchronize();
    std::vector<int> values(32);
    const ContextGuard guard(device);
    device.check(device.driver().cuMemcpyDtoH(values.data(), address, 128), "cuMemcpyDtoH");
    CHECK(values == std::vector<int>(32, values[0]));
    return values[0];
  }
  Pointer pointer() const { return {address}; }
  Device& device;
  CUdeviceptr address = 0;
};

LaunchConfig small_grid(const Stream& stream) {
  return {.grid = {1}, .block = {32}, .stream = stream};
}

}  // namespace

TEST_CASE("graph on a device: replays, updates and recaptures, and everything is given back") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  const Stream stream = Stream::create(device);
  const Ints x(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    launch(kernel, small_grid(stream), x.pointer(), 2, 1);
    launch(kernel, small_grid(stream), x.pointer(), 1, 3);
  });
  CHECK(x.read(stream) == 0);
  CHECK(graph.node_count() == 2);
  int expected = 0;
  for (int i = 0; i < 10; ++i) {
    graph.launch(stream);
    expected = 2 * expected + 4;
  }
  CHECK(x.read(stream) == expected);

  const GraphNode second = graph.nodes().at(1);
  CHECK(second.name == "affine");
  CHECK(second.kernel->handle() == kernel.handle());
  CUdeviceptr address = x.address;
  for (int step = 0; step < 5; ++step) {
    int a = 1;
    int b = step;
    void* arguments[] = {&address, &a, &b};
    graph.update(second, arguments);
    graph.launch(stream);
    expected = 2 * expected + 1 + step;
  }
  CHECK(x.read(stream) == expected);

  graph.capture(stream, [&] {
    launch(kernel, small_grid(stream), x.pointer(), 0, 1);
    launch(kernel, small_grid(stream), x.pointer(), 1, 6);
  });
  graph.launch(stream);
  CHECK(x.read(stream) == 7);
  graph.capture(stream, [&] { launch(kernel, small_grid(stream), x.pointer(), 0, 5); });
  CHECK(graph.node_count() == 1);
  graph.launch(stream);
  CHECK(x.read(stream) == 5);
}

TEST_CASE("graph on a device: forks join in order, however the streams run") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  const Stream stream = Stream::create(device);
  const Stream side = Stream::create(device);
  const Ints x(device);
  const Ints y(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    launch(kernel, small_grid(stream), x.pointer(), 0, 3);
    launch(kernel, small_grid(stream), y.pointer(), 0, 4);
    side.wait(stream.record());
    launch(kernel, small_grid(side), y.pointer(), 10, 1);
    launch(kernel, small_grid(stream), x.pointer(), 10, 2);
    stream.wait(side.record());
    launch(kernel, small_grid(stream), y.pointer(), 2, 0);
  });
  CHECK(graph.node_count() == 5);
  for (int i = 0; i < 20; ++i) {
    graph.launch(i % 2 == 0 ? stream : side);
    stream.wait(side.record());
    side.wait(stream.record());
    CHECK(x.read(stream) == 32);
    CHECK(y.read(stream) == 82);
  }
}

TEST_CASE("graph on a device: dropped while its launches are queued") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Stream stream = Stream::create(device);
  const Ints x(device);
  {
    const Kernel kernel = affine(device);
    Graph graph(device);
    graph.capture(stream, [&] { launch(kernel, small_grid(stream), x.pointer(), 1, 1); });
    for (int i = 0; i < 50; ++i) graph.launch(stream);
  }
  CHECK(x.read(stream) == 50);
}

TEST_CASE("graph on a device: refused calls leave the capture whole") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  const Stream stream = Stream::create(device);
  const Stream other = Stream::create(device);
  const Ints x(device);
  const Event outside = other.record();
  Graph graph(device);
  std::optional<Kernel> late;
  graph.capture(stream, [&] {
    launch(kernel, small_grid(stream), x.pointer(), 1, 1);
    CHECK_THROWS_AS(stream.synchronize(), CaptureError);
    CHECK_THROWS_AS(stream.done(), CaptureError);
    CHECK_THROWS_AS(device.synchronize(), CaptureError);
    CHECK_THROWS_AS(stream.wait(outside), CaptureError);
    CHECK_THROWS_AS(stream.record().synchronize(), CaptureError);
    CHECK_THROWS_AS(Graph(device).begin_capture(stream), CaptureError);
    late.emplace(affine(device));
    launch(*late, small_grid(stream), x.pointer(), 1, 1);
    launch(*late, small_grid(other), x.pointer(), 1, 100);
    other.synchronize();
    CHECK(device.memory_info().total > 0);
  });
  late.reset();
  CHECK(graph.node_count() == 2);
  graph.launch(stream);
  CHECK(x.read(stream) == 102);
}

TEST_CASE("graph on a device: work that a capture would lose is refused on demand") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  const Stream stream = Stream::create(device);
  const Stream side = Stream::create(device);
  const Ints x(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    const bool before = exchange_captured_only(true);
    CHECK(!before);
    launch(kernel, small_grid(stream), x.pointer(), 1, 1);
    CHECK_THROWS_AS(launch(kernel, small_grid(side), x.pointer(), 1, 100), CaptureError);
    side.wait(stream.record());
    launch(kernel, small_grid(side), x.pointer(), 1, 10);
    stream.wait(side.record());
    CHECK(exchange_captured_only(before));
  });
  CHECK(graph.node_count() == 2);
  launch(kernel, small_grid(side), x.pointer(), 1, 0);
  side.synchronize();
  graph.launch(stream);
  CHECK(x.read(stream) == 11);
}

TEST_CASE("graph on a device: events of a launch can be waited for and timed") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  const Stream stream = Stream::create(device);
  const Ints x(device);
  Event start(device);
  Event end(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    start.record(stream, true);
    launch(kernel, small_grid(stream), x.pointer(), 1, 1);
    end.record(stream, true);
  });
  CHECK(graph.node_count() == 3);
  graph.launch(stream);
  end.synchronize();
  CHECK(end.elapsed_ms(start) >= 0);
}

TEST_CASE("graph on a device: several threads capture, launch and drop graphs of their own") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = affine(device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = Stream::create(device);
      const Ints x(device);
      Graph graph(device);
      for (int round = 0; round < 5; ++round) {
        graph.capture(stream, [&] {
          for (int i = 0; i <= round % 2; ++i)
            launch(kernel, small_grid(stream), x.pointer(), 1, t + 1);
        });
        graph.launch(stream);
      }
      stream.synchronize();
      const ContextGuard guard(device);
      std::vector<int> values(32);
      device.driver().cuMemcpyDtoH(values.data(), x.address, 128);
      CHECK(values[0] == 7 * (t + 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
}
