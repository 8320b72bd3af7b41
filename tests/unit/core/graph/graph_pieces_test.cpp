// Graphs in pieces: the same work in the same order, whoever comes in between.
#include "core/graph/graph.h"

#include "base/errors.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/launch/launch_pieces.h"
#include "unit/core/fake_graph.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;

namespace {

/// add(p, n), loaded on the fake driver.
struct AddKernel {
  explicit AddKernel(Device& device) {
    FakeDriver::get().kernels = {{.name = "add", .parameter_sizes = {8, 4}}};
    const Module module = Module::load(device, ".version 8.0");
    for (const char* name : {"add"}) {
      KernelSignature signature{.name = name, .lowered = name, .parameters = {}};
      signature.parameters = {{.name = "p", .type = "float*", .kind = ParameterKind::pointer},
                              {.name = "n", .type = "int", .scalar = ScalarType::int32}};
      list.emplace_back(module, signature);
    }
  }
  const Kernel& add() const { return list[0]; }
  std::vector<Kernel> list;
};

LaunchConfig config_on(const Stream& stream) {
  return {.grid = {2}, .block = {32}, .stream = stream};
}

void set_arguments(Graph& graph, const GraphNode& node, std::uint64_t p, int n,
                   std::vector<std::shared_ptr<const void>> keep = {}) {
  void* pointers[] = {&p, &n};
  graph.update(node, pointers, std::move(keep));
}

constexpr Pointer kPlace{0x1000};

/// The second arguments of the launches so far; they are forgotten.
std::vector<int> take_numbers() {
  std::vector<int> numbers;
  for (const auto& each : FakeDriver::get().launches) {
    numbers.emplace_back();
    std::memcpy(&numbers.back(), each.arguments[1].data(), sizeof(int));
  }
  FakeDriver::get().launches.clear();
  return numbers;
}

using Numbers = std::vector<int>;

}  // namespace

TEST_CASE("graph: pieces run all of it in its order, with the latest arguments") {
  Device& device = fresh_device();
  const AddKernel kernels(device);
  const Stream stream = Stream::create(device);
  const Stream other = Stream::create(device);
  Graph graph(device);
  const auto record = [&](int first) {
    graph.capture(stream, [&] {
      for (int i = 0; i < 5; ++i) launch(kernels.add(), config_on(stream), kPlace, first + i);
    });
  };
  record(1);
  set_arguments(graph, graph.nodes()[3], 0x2000, 40);  // before the cut
  const auto run = [&](std::size_t count) {
    const auto pieces = graph.cut(count, stream);
    REQUIRE(pieces != nullptr);
    std::size_t queued = 0;
    for (; pieces->left() != 0; ++queued) pieces->queue();
    return queued;
  };
  CHECK(run(2) == 2);
  CHECK(take_numbers() == Numbers{1, 2, 3, 40, 5});
  set_arguments(graph, graph.nodes()[0], 0x2000, 10);  // behind it
  CHECK(run(2) == 2);
  CHECK(take_numbers() == Numbers{10, 2, 3, 40, 5});
  graph.launch(stream);
  CHECK(take_numbers() == Numbers{10, 2, 3, 40, 5});
  record(11);  // the executable is updated in place
  CHECK(run(100) == 5);
  CHECK(run(3) == 5);  // a finer cut serves, too
  CHECK(take_numbers() == Numbers{11, 12, 13, 14, 15, 11, 12, 13, 14, 15});
  // Others find a launch in pieces complete.
  auto pieces = graph.cut(5, stream);
  pieces->queue();
  graph.launch(other);
  CHECK(take_numbers() == Numbers{11, 12, 13, 14, 15, 11, 12, 13, 14, 15});
  pieces->queue();
  CHECK(pieces->left() == 0);
  CHECK(take_numbers().empty());
  pieces = graph.cut(5, stream);
  pieces->queue();
  set_arguments(graph, graph.nodes()[4], 0x2000, 0);
  CHECK(take_numbers() == Numbers{11, 12, 13, 14, 15});
  pieces = graph.cut(5, stream);
  pieces->queue();
  pieces.reset();  // drops the rest
  graph.launch(stream);
  CHECK(take_numbers() == Numbers{11, 11, 12, 13, 14, 0});
  CHECK(graph.cut(1, stream) == nullptr);
  graph.reset();
  CHECK(FakeDriver::get().live("graph") == 0);
  CHECK(FakeDriver::get().live("executable") == 0);
  CHECK_THROWS_AS(graph.cut(2, stream), Error);
}

TEST_CASE("graph: a cut that fails leaves the graph whole") {
  Device& device = fresh_device();
  const AddKernel kernels(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  graph.capture(stream, [&] {
    for (int i = 0; i < 3; ++i) launch(kernels.add(), config_on(stream), kPlace, i);
  });
  FakeDriver& driver = FakeDriver::get();
  for (const char* call : {"cuGraphClone", "cuGraphNodeFindInClone", "cuGraphDestroyNode",
                           "cuGraphInstantiateWithFlags"}) {
    for (int skip = 0; skip < 2; ++skip) {
      driver.fail(call, CUDA_ERROR_OUT_OF_MEMORY, 1, skip);
      CHECK_THROWS_AS(graph.cut(3, stream), Error);
      CHECK(driver.live("graph") == 1);
      CHECK(driver.live("executable") == 1);
    }
  }
  driver.fail("cuGraphClone", CUDA_ERROR_NOT_SUPPORTED);
  CHECK(graph.cut(3, stream) == nullptr);
  graph.launch(stream);
  CHECK(take_numbers() == Numbers{0, 1, 2});
}
