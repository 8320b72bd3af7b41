// Graphs of the simulated driver: made by capture and by hand, launched, changed, cloned.
#include "unit/sim/device/capture_fixture.h"

#include <set>
#include <utility>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

struct Graphs : StreamDevice {
  Graphs() : x(words(4)), main(stream()) {}
  ~Graphs() {
    api.cuStreamDestroy(main);
    api.cuMemFree(x);
  }
  CUgraph captured(std::initializer_list<std::uint32_t> values) const {
    begin_capture(*this, main);
    for (const std::uint32_t value : values) REQUIRE(push(main, x, value) == CUDA_SUCCESS);
    return end_capture(*this, main);
  }
  std::uint32_t after_launch(CUgraphExec executable) const {
    REQUIRE(api.cuMemsetD32Async(x, 0, 1, main) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphLaunch(executable, main) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(main) == CUDA_SUCCESS);
    return word(x);
  }
  CUDA_KERNEL_NODE_PARAMS push_node(void** parameters) const {
    return {push_kernel, 1, 1, 1, 1, 1, 1, 0, parameters, nullptr, nullptr, nullptr};
  }
  CUdeviceptr x;
  CUstream main;
};

struct NodeParameters {
  CUdeviceptr address;
  std::uint32_t value;
  void* pointers[2] = {&address, &value};
};

}  // namespace

TEST_CASE("sim graph: a captured graph runs at each launch, and outlives what it was made from") {
  Graphs device;
  const DriverApi& api = device.api;
  const CUgraph graph = device.captured({1, 2, 3});
  const CUgraphExec executable = instantiate(device, graph);
  CHECK(device.after_launch(executable) == pushed({1, 2, 3}));
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(api.cuGraphUpload(executable, device.main) == CUDA_SUCCESS);
  CHECK(device.after_launch(executable) == pushed({1, 2, 3}));
  CHECK(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(device.word(device.x) == pushed({1, 2, 3, 1, 2, 3}));
  CHECK(api.cuGraphLaunch(executable, device.main) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_ERROR_INVALID_VALUE);
  CUgraphExec none = nullptr;
  CHECK(api.cuGraphInstantiateWithFlags(&none, graph, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim graph: all kinds of work become nodes") {
  Graphs device;
  const DriverApi& api = device.api;
  std::uint32_t host[2] = {40, 0};
  int calls = 0;
  begin_capture(device, device.main);
  REQUIRE(api.cuMemcpyHtoDAsync(device.x, &host[0], 4, device.main) == CUDA_SUCCESS);
  REQUIRE(device.push(device.main, device.x, 2) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD2D32Async(device.x + 4, 4, 7, 1, 2, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyDtoDAsync(device.x + 12, device.x, 4, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuLaunchHostFunc(
              device.main, [](void* data) { ++*static_cast<int*>(data); }, &calls) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyDtoHAsync(&host[1], device.x + 12, 4, device.main) == CUDA_SUCCESS);
  const CUgraph graph = end_capture(device, device.main);
  CHECK(types_of(device, graph) == std::vector{CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_KERNEL,
                                               CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_MEMCPY,
                                               CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_MEMCPY});
  CHECK(calls == 0);
  const CUgraphExec executable = instantiate(device, graph);
  for (std::uint32_t launch = 1; launch <= 3; ++launch) {
    host[0] = 40 + launch;  // pageable memory too is read when the node runs
    REQUIRE(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
    CHECK(host[1] == pushed({2}, 40 + launch));
    CHECK(calls == static_cast<int>(launch));
    CHECK(device.word(device.x + 8) == 7);
  }
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: nodes by hand, their parameters, and the limits of lists") {
  Graphs device;
  const DriverApi& api = device.api;
  CUgraph graph = nullptr;
  CHECK(api.cuGraphCreate(&graph, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  CUgraphNode first = nullptr, second = nullptr;
  NodeParameters one{device.x, 1}, two{device.x, 2};
  const auto one_node = device.push_node(one.pointers), two_node = device.push_node(two.pointers);
  REQUIRE(api.cuGraphAddKernelNode(&first, graph, nullptr, 0, &one_node) == CUDA_SUCCESS);
  one.value = 99;  // was copied
  REQUIRE(api.cuGraphAddKernelNode(&second, graph, &first, 1, &two_node) == CUDA_SUCCESS);
  const CUgraphNode twice[] = {first, first};
  CHECK(api.cuGraphAddKernelNode(&second, graph, twice, 2, &two_node) == CUDA_ERROR_INVALID_VALUE);
  CUDA_KERNEL_NODE_PARAMS bad = two_node;
  bad.blockDimX = 5000;
  CHECK(api.cuGraphAddKernelNode(&second, graph, nullptr, 0, &bad) == CUDA_ERROR_INVALID_VALUE);
  bad = two_node;
  bad.func = nullptr;
  CHECK(api.cuGraphAddKernelNode(&second, graph, nullptr, 0, &bad) == CUDA_ERROR_INVALID_HANDLE);
  CUgraphNode room[3] = {first, first, first};
  std::size_t count = 3;
  REQUIRE(api.cuGraphGetNodes(graph, room, &count) == CUDA_SUCCESS);
  CHECK(count == 2);
  CHECK(room[2] == nullptr);
  count = 1;
  REQUIRE(api.cuGraphGetNodes(graph, room, &count) == CUDA_SUCCESS);
  CHECK(count == 1);
  CUDA_KERNEL_NODE_PARAMS read{};
  REQUIRE(api.cuGraphKernelNodeGetParams(first, &read) == CUDA_SUCCESS);
  CHECK(read.func == device.push_kernel);
  CHECK(*static_cast<CUdeviceptr*>(read.kernelParams[0]) == device.x);
  CHECK(*static_cast<std::uint32_t*>(read.kernelParams[1]) == 1);
  CHECK(read.ctx == device.context);
  const CUgraphExec executable = instantiate(device, graph);
  CHECK(device.after_launch(executable) == pushed({1, 2}));
  NodeParameters three{device.x, 3};
  const auto three_node = device.push_node(three.pointers);
  REQUIRE(api.cuGraphKernelNodeSetParams(first, &three_node) == CUDA_SUCCESS);
  CHECK(device.after_launch(executable) == pushed({1, 2}));  // copied when instantiated
  REQUIRE(api.cuGraphExecKernelNodeSetParams(executable, second, &three_node) == CUDA_SUCCESS);
  CHECK(device.after_launch(executable) == pushed({1, 3}));
  CUgraph clone = nullptr;
  REQUIRE(api.cuGraphClone(&clone, graph) == CUDA_SUCCESS);
  CHECK(api.cuGraphExecKernelNodeSetParams(executable, nodes_of(device, clone)[0], &three_node) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(api.cuGraphKernelNodeGetParams(first, &read) == CUDA_ERROR_INVALID_VALUE);
  const CUgraphExec of_clone = instantiate(device, clone);
  CHECK(device.after_launch(of_clone) == pushed({3, 2}));
  for (const CUgraphExec one_exec : {executable, of_clone}) api.cuGraphExecDestroy(one_exec);
  CHECK(api.cuGraphDestroy(clone) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: an update takes new parameters, or says what changed") {
  Graphs device;
  const DriverApi& api = device.api;
  const CUgraph graph = device.captured({1, 2});
  const CUgraphExec executable = instantiate(device, graph);
  CUgraphExecUpdateResultInfo info{};
  const CUgraph other = device.captured({5, 6}), longer = device.captured({5, 6, 7});
  REQUIRE(api.cuGraphExecUpdate(executable, other, &info) == CUDA_SUCCESS);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CHECK(info.errorNode == nullptr);
  CHECK(device.after_launch(executable) == pushed({5, 6}));
  CHECK(api.cuGraphExecUpdate(executable, longer, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(info.errorNode == nodes_of(device, longer)[2]);
  begin_capture(device, device.main);
  REQUIRE(device.push(device.main, device.x, 8) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD32Async(device.x, 4, 1, device.main) == CUDA_SUCCESS);
  const CUgraph typed = end_capture(device, device.main);
  CHECK(api.cuGraphExecUpdate(executable, typed, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(info.errorNode == nodes_of(device, typed)[1]);
  CHECK(device.after_launch(executable) == pushed({5, 6}));
  // Another kernel of the same context is a parameter like any other.
  begin_capture(device, device.main);
  REQUIRE(device.each(device.main, device.x, 8, 1) == CUDA_SUCCESS);
  REQUIRE(device.push(device.main, device.x, 9) == CUDA_SUCCESS);
  const CUgraph function = end_capture(device, device.main);
  REQUIRE(api.cuGraphExecUpdate(executable, function, &info) == CUDA_SUCCESS);
  CHECK(device.after_launch(executable) == pushed({9}, 8));
  NodeParameters last{device.x, 3};
  const auto last_node = device.push_node(last.pointers);
  CHECK(api.cuGraphExecKernelNodeSetParams(executable, nodes_of(device, graph)[1], &last_node) ==
        CUDA_SUCCESS);
  CHECK(device.after_launch(executable) == pushed({3}, 8));
  for (const CUgraph one : {graph, other, longer, typed, function}) api.cuGraphDestroy(one);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: a launch that waits keeps the parameters of its time") {
  Graphs device;
  const DriverApi& api = device.api;
  const CUgraph graph = device.captured({1}), other = device.captured({2});
  const CUgraphExec executable = instantiate(device, graph);
  const CUstream second = device.stream();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Seeded seeded(seed);
    CUgraphExecUpdateResultInfo info{};
    REQUIRE(api.cuMemsetD32(device.x, 0, 1) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    REQUIRE(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphExecUpdate(executable, other, &info) == CUDA_SUCCESS);
    REQUIRE(api.cuGraphLaunch(executable, second) == CUDA_SUCCESS);  // behind the launch before
    REQUIRE(api.cuGraphExecUpdate(executable, graph, &info) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(device.word(device.x) == pushed({1, 2}));
  }
  CHECK(api.cuStreamDestroy(second) == CUDA_SUCCESS);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  for (const CUgraph one : {graph, other}) api.cuGraphDestroy(one);
}

TEST_CASE("sim graph: branches run in any order that respects their dependencies") {
  Graphs device;
  const DriverApi& api = device.api;
  CUgraph graph = nullptr;
  REQUIRE(api.cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  CUgraphNode root = nullptr, left = nullptr, right = nullptr, join = nullptr;
  NodeParameters values[] = {{device.x, 1}, {device.x, 2}, {device.x, 3}, {device.x, 4}};
  const auto add = [&](CUgraphNode* node, std::vector<CUgraphNode> before, NodeParameters& p) {
    void* pointers[] = {&p.address, &p.value};
    const auto node_parameters = device.push_node(pointers);
    REQUIRE(api.cuGraphAddKernelNode(node, graph, before.data(), before.size(), &node_parameters) ==
            CUDA_SUCCESS);
  };
  add(&root, {}, values[0]);
  add(&left, {root}, values[1]);
  add(&right, {root}, values[2]);
  add(&join, {left, right}, values[3]);
  const CUgraphExec executable = instantiate(device, graph);
  std::set<std::uint32_t> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Seeded seeded(seed);
    seen.insert(device.after_launch(executable));
  }
  CHECK(seen == std::set<std::uint32_t>{pushed({1, 2, 3, 4}), pushed({1, 3, 2, 4})});
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: memory nodes hand out the same memory at each launch") {
  Graphs device;
  const DriverApi& api = device.api;
  CUdeviceptr y = 0, z = 0;
  begin_capture(device, device.main);
  REQUIRE(api.cuMemAllocAsync(&y, 4, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD32Async(y, 6, 1, device.main) == CUDA_SUCCESS);
  REQUIRE(device.push(device.main, y, 1) == CUDA_SUCCESS);
  REQUIRE(api.cuMemcpyDtoDAsync(device.x, y, 4, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuMemFreeAsync(y, device.main) == CUDA_SUCCESS);
  const CUgraph graph = end_capture(device, device.main);
  CHECK(types_of(device, graph) == std::vector{CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                               CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_KERNEL,
                                               CU_GRAPH_NODE_TYPE_MEMCPY,
                                               CU_GRAPH_NODE_TYPE_MEM_FREE});
  CUgraph clone = nullptr;
  CHECK(api.cuGraphClone(&clone, graph) == CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec executable = instantiate(device, graph);
  for (int i = 0; i < 3; ++i) CHECK(device.after_launch(executable) == pushed({1}, 6));
  CUgraphExecUpdateResultInfo info{};
  CHECK(api.cuGraphExecUpdate(executable, graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuMemFree(y) == CUDA_ERROR_INVALID_VALUE);  // went with the graph
  // Without a free node somebody else frees it before the next launch, or the launch does.
  begin_capture(device, device.main);
  REQUIRE(api.cuMemAllocAsync(&z, 4, device.main) == CUDA_SUCCESS);
  const CUgraph keeping = end_capture(device, device.main);
  executable = instantiate(device, keeping);
  const CUgraphExec automatic =
      instantiate(device, keeping, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  REQUIRE(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(api.cuGraphLaunch(executable, device.main) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFreeAsync(z, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(api.cuGraphLaunch(automatic, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamSynchronize(device.main) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(z) == CUDA_SUCCESS);
  for (const CUgraphExec one : {executable, automatic}) api.cuGraphExecDestroy(one);
  CHECK(api.cuGraphDestroy(keeping) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: a launch into a capture is a node; external events work at each launch") {
  Graphs device;
  const DriverApi& api = device.api;
  const CUevent event = device.event();
  const CUgraph inner = device.captured({1, 2});
  const CUgraphExec inner_exec = instantiate(device, inner);
  begin_capture(device, device.main);
  REQUIRE(api.cuGraphLaunch(inner_exec, device.main) == CUDA_SUCCESS);
  REQUIRE(api.cuEventRecordWithFlags(event, device.main, CU_EVENT_RECORD_EXTERNAL) == CUDA_SUCCESS);
  REQUIRE(device.push(device.main, device.x, 3) == CUDA_SUCCESS);
  const CUgraph graph = end_capture(device, device.main);
  CHECK(types_of(device, graph) == std::vector{CU_GRAPH_NODE_TYPE_GRAPH,
                                               CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                               CU_GRAPH_NODE_TYPE_KERNEL});
  const CUgraphExec executable = instantiate(device, graph);
  const CUstream side = device.stream();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Seeded seeded(seed);
    CHECK(device.after_launch(executable) == pushed({1, 2, 3}));
    REQUIRE(api.cuGraphLaunch(executable, device.main) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamWaitEvent(side, event, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuMemcpyDtoDAsync(device.x + 4, device.x, 4, side) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(side) == CUDA_SUCCESS);
    const std::uint32_t copied = device.word(device.x + 4);
    const std::uint32_t inner_done = pushed({1, 2, 3, 1, 2});
    CHECK((copied == inner_done || copied == inner_done * 31 + 3));
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
  }
  for (const CUgraphExec one : {inner_exec, executable}) api.cuGraphExecDestroy(one);
  for (const CUgraph one : {inner, graph}) api.cuGraphDestroy(one);
  CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(side) == CUDA_SUCCESS);
}

TEST_CASE("sim graph: a kernel whose module is gone is refused with a report") {
  Graphs device;
  const DriverApi& api = device.api;
  const CUgraph graph = device.captured({1});
  const CUgraphExec executable = instantiate(device, graph);
  REQUIRE(api.cuModuleUnload(std::exchange(device.module, nullptr)) == CUDA_SUCCESS);
  CUresult result = api.cuGraphLaunch(executable, device.main);
  if (result == CUDA_SUCCESS) result = api.cuStreamSynchronize(device.main);
  CHECK(result == CUDA_ERROR_INVALID_HANDLE);
  CHECK(device.report().message.find("unloaded") != std::string::npos);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
}
