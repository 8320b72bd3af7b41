// Graphs: recorded nodes and kept objects, updates in place or anew, and misuse without a trace.
#include "core/graph/graph.h"

#include "base/errors.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_graph.h"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

/// add(p, n) and mul(p, n), loaded on the fake driver.
struct Kernels {
  explicit Kernels(Device& device) {
    FakeDriver::get().kernels = {{.name = "add", .parameter_sizes = {8, 4}},
                                 {.name = "mul", .parameter_sizes = {8, 4}}};
    const Module module = Module::load(device, ".version 8.0");
    for (const char* name : {"add", "mul"}) {
      KernelSignature signature{.name = name, .lowered = name, .parameters = {}};
      signature.parameters = {{.name = "p", .type = "float*", .kind = ParameterKind::pointer},
                              {.name = "n", .type = "int", .scalar = ScalarType::int32}};
      list.emplace_back(module, signature);
    }
  }
  const Kernel& add() const { return list[0]; }
  const Kernel& mul() const { return list[1]; }
  std::vector<Kernel> list;
};

int last_number() {
  int value = 0;
  std::memcpy(&value, FakeDriver::get().launches.back().arguments[1].data(), sizeof value);
  return value;
}

LaunchConfig on(const Stream& stream) { return {.grid = {2}, .block = {32}, .stream = stream}; }

void update(Graph& graph, const GraphNode& node, std::uint64_t p, int n,
            std::vector<std::shared_ptr<const void>> keep = {}) {
  void* pointers[] = {&p, &n};
  graph.update(node, pointers, std::move(keep));
}

constexpr Pointer kMemory{0x1000};

}  // namespace

TEST_CASE("graph: a capture records and runs nothing; each launch runs all of it") {
  Device& device = fresh_device();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  CHECK(graph.node_count() == 0);
  CHECK_FALSE(graph.is_ready());
  graph.capture(stream, [&] {
    CHECK(graph.is_capturing());
    CHECK(any_capture());
    launch(kernels.add(), on(stream), kMemory, 1);
    launch(kernels.mul(), on(stream), kMemory, 2);
    launch(kernels.add(), on(stream), kMemory, 3);
  });
  FakeDriver& driver = FakeDriver::get();
  CHECK(driver.launches.empty());
  CHECK_FALSE(any_capture());
  CHECK(graph.node_count() == 3);
  const std::vector<GraphNode> nodes = graph.nodes();
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].name == "add");
  CHECK(nodes[1].name == "mul");
  CHECK(nodes[2].kernel->handle() == kernels.add().handle());
  CHECK(nodes[1].grid == Dim3{2, 1, 1});
  CHECK(nodes[1].block == Dim3{32, 1, 1});
  graph.launch(stream);
  graph.launch();
  REQUIRE(driver.launches.size() == 6);
  CHECK(driver.launches[0].stream == stream.handle());
  CHECK(driver.launches[3].stream == nullptr);
  CHECK(driver.launches[4].kernel == "mul");
  CHECK(driver.calls("cuGraphUpload") == 1);
  CHECK(contains(device.launches().describe(), "graph(add, mul, add)"));
}

TEST_CASE("graph: what it uses lives until its launches are done, and not longer") {
  Device& device = fresh_device();
  FakeDriver& driver = FakeDriver::get();
  auto memory = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = memory;
  {
    const Stream stream = Stream::create(device);
    std::optional<Graph> graph(device);
    {
      const Kernels kernels(device);
      graph->capture(stream, [&] {
        launch(kernels.add(), on(stream), kMemory, 1);
        find_capture(stream)->keep_alive(std::exchange(memory, nullptr));
      });
    }
    CHECK(driver.live("module") == 1);
    CHECK_FALSE(watched.expired());
    graph->launch(stream);
    graph.reset();
    CHECK(driver.calls("cuEventSynchronize") == 1);
    CHECK(watched.expired());
    CHECK(driver.live("module") == 0);
    CHECK(driver.live("graph") == 0);
    CHECK(driver.live("executable") == 0);
  }
  CHECK(driver.live("event") == 0);
  CHECK(driver.live("stream") == 0);
}

TEST_CASE("graph: the same structure is updated in place, another one is made anew") {
  Device& device = fresh_device();
  FakeDriver& driver = FakeDriver::get();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  const auto record = [&](int first, bool two) {
    graph.capture(stream, [&] {
      launch(kernels.add(), on(stream), kMemory, first);
      if (two) launch(kernels.mul(), on(stream), kMemory, 5);
    });
  };
  record(1, false);
  const GraphNode node = graph.nodes().at(0);
  record(2, false);
  CHECK(driver.calls("cuGraphInstantiateWithFlags") == 1);
  CHECK(driver.calls("cuGraphExecUpdate") == 1);
  graph.launch(stream);
  CHECK(last_number() == 2);
  update(graph, node, 0x2000, 9);  // nodes of the same structure stay valid
  graph.launch(stream);
  CHECK(last_number() == 9);

  record(3, true);
  CHECK(driver.calls("cuGraphInstantiateWithFlags") == 2);
  CHECK(driver.calls("cuGraphExecUpdate") == 1);
  CHECK(graph.node_count() == 2);
  CHECK(contains(message_of<InvalidArgument>([&] { update(graph, node, 0x2000, 1); }),
                 "earlier capture"));

  // The driver may know a reason of its own.
  driver.fail("cuGraphExecUpdate", CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  record(4, true);
  CHECK(driver.calls("cuGraphInstantiateWithFlags") == 3);
  CHECK(driver.live("executable") == 1);
  CHECK(driver.live("graph") == 1);
}

TEST_CASE("graph: update changes the arguments of later launches and holds what they refer to") {
  Device& device = fresh_device();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    launch(kernels.add(), on(stream), kMemory, 1);
    launch(kernels.mul(), on(stream), kMemory, 2);
  });
  const std::vector<GraphNode> nodes = graph.nodes();
  auto first = std::make_shared<int>(1);
  auto second = std::make_shared<int>(2);
  const std::weak_ptr<int> watched_first = first;
  const std::weak_ptr<int> watched_second = second;
  update(graph, nodes[1], 0x3000, 20, {std::exchange(first, nullptr)});
  CHECK_FALSE(watched_first.expired());
  graph.launch(stream);
  CHECK(last_number() == 20);
  update(graph, nodes[1], 0x4000, 30, {std::exchange(second, nullptr)});
  graph.launch(stream);  // by now the first launch is done
  CHECK(last_number() == 30);
  CHECK(watched_first.expired());
  CHECK_FALSE(watched_second.expired());

  int n = 0;
  void* one[] = {&n};
  CHECK(contains(message_of<ArgumentError>([&] { graph.update(nodes[0], one); }),
                 "1 arguments for 2 parameters"));
  Graph other(device);
  CHECK_THROWS_AS(update(other, nodes[0], 1, 1), Error);
  other.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 1); });
  CHECK(contains(message_of<InvalidArgument>([&] { update(other, nodes[0], 1, 1); }),
                 "another graph"));
  graph.reset();
  CHECK(watched_second.expired());
  CHECK(graph.node_count() == 0);
  CHECK_THROWS_AS(graph.launch(stream), Error);
}

TEST_CASE("graph: streams fork and join by events, and are kept meanwhile") {
  Device& device = fresh_device();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    launch(kernels.add(), on(stream), kMemory, 1);
    {
      const Stream side = Stream::create(device);
      side.wait(stream.record());
      launch(kernels.mul(), on(side), kMemory, 2);
      CHECK(find_capture(side) == find_capture(stream));
      stream.wait(side.record());
    }
    CHECK(FakeDriver::get().live("stream") == 2);
    launch(kernels.add(), on(stream), kMemory, 3);
  });
  CHECK(graph.node_count() == 3);
  CHECK(graph.nodes()[1].name == "mul");
  graph = Graph(device);
  CHECK(FakeDriver::get().live("stream") == 1);

  const Stream side = Stream::create(device);
  const std::string text = message_of<CaptureError>([&] {
    graph.capture(stream, [&] {
      side.wait(stream.record());
      launch(kernels.mul(), on(side), kMemory, 2);
    });
  });
  CHECK(contains(text, "not joined again"));
  CHECK_FALSE(any_capture());
  graph.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 1); });
  CHECK(graph.node_count() == 1);
}

TEST_CASE("graph: what cannot be captured is refused before the driver, and the capture survives") {
  Device& device = fresh_device();
  FakeDriver& driver = FakeDriver::get();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  const Stream other = Stream::create(device);
  Event outside(device);
  outside.record(other);
  Graph graph(device);
  Graph second(device);
  Event inside(device);
  graph.capture(stream, [&] {
    launch(kernels.add(), on(stream), kMemory, 1);
    inside.record(stream);
    CHECK_THROWS_AS(stream.synchronize(), CaptureError);
    CHECK_THROWS_AS(stream.synchronize(std::chrono::seconds(1)), CaptureError);
    CHECK_THROWS_AS(stream.done(), CaptureError);
    CHECK_THROWS_AS(device.synchronize(), CaptureError);
    CHECK_THROWS_AS(device.synchronize(std::chrono::seconds(1)), CaptureError);
    CHECK_THROWS_AS(inside.synchronize(), CaptureError);
    CHECK_THROWS_AS(inside.done(), CaptureError);
    CHECK_THROWS_AS(inside.elapsed_ms(outside), CaptureError);
    CHECK_THROWS_AS(outside.elapsed_ms(inside), CaptureError);
    CHECK_THROWS_AS(stream.wait(outside), CaptureError);
    CHECK_THROWS_AS(Stream::legacy(device).wait(inside), CaptureError);
    CHECK_THROWS_AS(graph.begin_capture(other), CaptureError);
    CHECK_THROWS_AS(graph.launch(other), CaptureError);
    CHECK_THROWS_AS(graph.reset(), CaptureError);
    CHECK_THROWS_AS(second.begin_capture(stream), CaptureError);
    CHECK(driver.calls("cuStreamSynchronize") + driver.calls("cuStreamQuery") == 0);
    CHECK(driver.calls("cuCtxSynchronize") + driver.calls("cuEventQuery") == 0);
    // Work outside of the capture goes on.
    other.synchronize();
    outside.synchronize();
    CHECK(other.done());
    device.memory_info();
    const Kernels late(device);
    launch(late.mul(), on(stream), kMemory, 2);
    launch(late.mul(), on(other), kMemory, 2);
  });
  CHECK(graph.node_count() == 2);
  CHECK(driver.launches.size() == 1);
  CHECK(contains(message_of<CaptureError>([&] { other.wait(inside); }), "has ended"));
  inside.record(stream);
  inside.synchronize();
  CHECK(inside.elapsed_ms(outside) > 0);
}

TEST_CASE("graph: an event can be recorded by each launch") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  Graph graph(device);
  Event event(device);
  graph.capture(stream, [&] { event.record(stream, true); });
  CHECK(graph.node_count() == 1);
  CHECK(graph.nodes().empty());
  CHECK(event.capture() == 0);
  event.synchronize();
  event.record(stream, true);  // outside a capture it is recorded as always
  CHECK(FakeDriver::get().calls("cuEventRecordWithFlags") == 1);
}

TEST_CASE("graph: a body that throws drops the recording and leaves the graph as it was") {
  Device& device = fresh_device();
  FakeDriver& driver = FakeDriver::get();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 1); });
  bool ended = false;
  CHECK_THROWS_AS(graph.capture(stream,
                                [&] {
                                  launch(kernels.mul(), on(stream), kMemory, 2);
                                  find_capture(stream)->at_end([&] { ended = true; });
                                  CHECK_FALSE(ended);
                                  throw std::runtime_error("changed my mind");
                                }),
                  std::runtime_error);
  CHECK(ended);
  CHECK(graph.node_count() == 1);
  CHECK(driver.live("graph") == 1);
  for (const char* call : {"cuStreamEndCapture", "cuGraphGetNodes", "cuGraphNodeGetType",
                           "cuGraphKernelNodeGetParams", "cuGraphExecUpdate"}) {
    graph.begin_capture(stream);
    launch(kernels.add(), on(stream), kMemory, 5);
    driver.fail(call, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_THROWS_AS(graph.end_capture(), Error);
    CHECK_FALSE(any_capture());
    CHECK(graph.node_count() == 1);
    testing::reset_captures();  // the fake's capture goes on when its end is made to fail
  }
  CHECK(driver.live("graph") == 1);
  graph.launch(stream);
  CHECK(last_number() == 1);
  driver.fail("cuGraphUpload", CUDA_ERROR_OUT_OF_MEMORY);
  graph.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 6); });
}

TEST_CASE("graph: a capture broken behind our back says so, and the next one is fine") {
  Device& device = fresh_device();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.begin_capture(stream);
  testing::break_captures();
  CHECK_THROWS_AS(stream.synchronize(), CaptureError);
  CHECK(contains(message_of<CaptureError>([&] { graph.end_capture(); }), "another library"));
  CHECK_THROWS_AS(graph.end_capture(), CaptureError);
  graph.begin_capture(stream);
  testing::break_captures();
  graph.discard_capture();
  graph.discard_capture();
  graph.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 1); });
  CHECK(graph.node_count() == 1);
}

TEST_CASE("graph: the wrong stream and the wrong device are named, nothing begins") {
  DeviceRegistry& registry = testing::fake_registry();
  Device& device = registry.by_index(0);
  Device& far = registry.by_index(1);
  Graph graph(device);
  CHECK(contains(message_of<CaptureError>([&] { graph.begin_capture({}); }), "legacy"));
  CHECK_THROWS_AS(graph.begin_capture(Stream::legacy(device)), CaptureError);
  CHECK_THROWS_AS(graph.begin_capture(Stream::legacy(far)), CaptureError);
  const Stream elsewhere = Stream::create(far);
  CHECK(contains(message_of<InvalidArgument>([&] { graph.begin_capture(elsewhere); }), "cuda:1"));
  CHECK(FakeDriver::get().calls("cuStreamBeginCapture") == 0);
  const Stream stream = Stream::create(device);
  graph.capture(stream, [] {});
  CHECK(graph.is_ready());
  CHECK(graph.node_count() == 0);
  graph.launch(stream);
  CHECK(contains(message_of<InvalidArgument>([&] { graph.launch(elsewhere); }), "cuda:1"));
}

TEST_CASE("graph: another library's capture is seen and left alone") {
  Device& device = fresh_device();
  FakeDriver& driver = FakeDriver::get();
  const Stream stream = Stream::create(device);
  const Stream same = Stream::borrow(device, stream.handle());
  CUgraph recorded = nullptr;
  REQUIRE(driver.api().cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_GLOBAL) ==
          CUDA_SUCCESS);
  Graph graph(device);
  CHECK_THROWS_AS(graph.begin_capture(same), CaptureError);
  CHECK_THROWS_AS(same.synchronize(), CaptureError);
  Event event(device);
  event.record(same);
  CHECK_THROWS_AS(event.synchronize(), CaptureError);
  CHECK_FALSE(event.captured_by_graph());
  CHECK(driver.api().cuStreamEndCapture(stream.handle(), &recorded) == CUDA_SUCCESS);
  driver.api().cuGraphDestroy(recorded);
}

TEST_CASE("graph: launches from several threads") {
  Device& device = fresh_device();
  const Kernels kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] { launch(kernels.add(), on(stream), kMemory, 1); });
  const GraphNode node = graph.nodes()[0];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Stream own = Stream::create(device);
      for (int i = 0; i < 100; ++i) {
        update(graph, node, 0x1000, t, {std::make_shared<int>(i)});
        graph.launch(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(FakeDriver::get().launches.size() == 400);
}

TEST_CASE("graph: an attachment is made once and lives with the graph") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  static const int key = 0;
  std::weak_ptr<void> arena;
  int made = 0;
  {
    Graph graph(device);
    graph.capture(stream, [&] {
      for (int i = 0; i < 3; ++i) {
        arena = find_capture(stream)->attachment(&key, [&]() -> std::shared_ptr<void> {
          ++made;
          return std::make_shared<int>(3);
        });
      }
    });
    CHECK_FALSE(arena.expired());
  }
  CHECK(made == 1);
  CHECK(arena.expired());
}

TEST_CASE("graph: a graph that goes while it captures ends the capture") {
  Device& device = fresh_device();
  const Stream stream = Stream::create(device);
  {
    Graph graph(device);
    graph.begin_capture(stream);
  }
  CHECK_FALSE(any_capture());
  stream.synchronize();
  CHECK(FakeDriver::get().live("graph") == 0);
}
