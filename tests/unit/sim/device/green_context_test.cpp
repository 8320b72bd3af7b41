// Green contexts of the simulated driver: splits, descriptors, streams and where their kernels run.
#include "sim/device/green_context.h"

#include "sim/device/profile.h"
#include "unit/sim/device/stream_fixture.h"

#include <array>
#include <set>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr char kWhere[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry where(.param .u64 x)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %smid;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

/// A device with the kernel above.
struct GreenDevice : CurrentDevice {
  GreenDevice() {
    REQUIRE(api.cuModuleLoadData(&module, kWhere) == CUDA_SUCCESS);
    REQUIRE(api.cuModuleGetFunction(&where, module, "where") == CUDA_SUCCESS);
    REQUIRE(api.cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  }
  ~GreenDevice() { api.cuModuleUnload(module); }
  GreenDevice(const GreenDevice&) = delete;
  GreenDevice& operator=(const GreenDevice&) = delete;

  CUresult split(std::vector<CUdevResource>& groups, unsigned least, CUdevResource* rest = nullptr,
                 unsigned flags = 0) const {
    auto count = static_cast<unsigned>(groups.size());
    const CUresult result =
        api.cuDevSmResourceSplitByCount(groups.data(), &count, &whole, rest, flags, least);
    if (result == CUDA_SUCCESS) groups.resize(count);
    return result;
  }
  CUgreenCtx green(std::vector<CUdevResource> resources) const {
    CUdevResourceDesc descriptor = nullptr;
    CUgreenCtx made = nullptr;
    REQUIRE(api.cuDevResourceGenerateDesc(&descriptor, resources.data(),
                                          static_cast<unsigned>(resources.size())) == CUDA_SUCCESS);
    REQUIRE(api.cuGreenCtxCreate(&made, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM) ==
            CUDA_SUCCESS);
    return made;
  }
  CUstream stream(CUgreenCtx green_context) const {
    CUstream made = nullptr;
    REQUIRE(api.cuGreenCtxStreamCreate(&made, green_context, CU_STREAM_NON_BLOCKING, 0) ==
            CUDA_SUCCESS);
    return made;
  }
  /// Multiprocessors of a launch of many blocks.
  std::set<unsigned> places(CUstream on) const {
    constexpr unsigned kBlocks = 300;
    CUdeviceptr x = allocate(4 * kBlocks);
    void* parameters[] = {&x};
    REQUIRE(api.cuLaunchKernel(where, kBlocks, 1, 1, 32, 1, 1, 0, on, parameters, nullptr) ==
            CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(on) == CUDA_SUCCESS);
    const auto values = download<unsigned>(x, kBlocks);
    REQUIRE(api.cuMemFree(x) == CUDA_SUCCESS);
    return {values.begin(), values.end()};
  }

  CUmodule module = nullptr;
  CUfunction where = nullptr;
  CUdevResource whole{};
};

}  // namespace

TEST_CASE("sim green context: the device tells its multiprocessors, minimum and alignment") {
  const GreenDevice device;
  CHECK(device.whole.type == CU_DEV_RESOURCE_TYPE_SM);
  CHECK(device.whole.sm.smCount == 132);
  CHECK(device.whole.sm.minSmPartitionSize == (device_profile().is_90 ? 8 : 4));
  CHECK(device.whole.sm.smCoscheduledAlignment == (device_profile().is_90 ? 8 : 2));
  CUdevResource other{};
  CHECK(device.api.cuDeviceGetDevResource(0, &other, CU_DEV_RESOURCE_TYPE_INVALID) ==
        CUDA_ERROR_INVALID_RESOURCE_TYPE);
  CHECK(device.api.cuDeviceGetDevResource(0, nullptr, CU_DEV_RESOURCE_TYPE_SM) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(device.api.cuDeviceGetDevResource(99, &other, CU_DEV_RESOURCE_TYPE_SM) ==
        CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("sim green context: a split rounds up, makes equal groups and tells the rest") {
  const GreenDevice device;
  const bool is_90 = device_profile().is_90;
  const auto counts = [&](unsigned least, unsigned flags) {
    std::vector<CUdevResource> groups(200);
    CUdevResource rest{};
    REQUIRE(device.split(groups, least, &rest, flags) == CUDA_SUCCESS);
    std::set<unsigned> sizes;
    for (const CUdevResource& group : groups) sizes.insert(group.sm.smCount);
    REQUIRE(sizes.size() == 1);
    const unsigned left = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
    return std::array{static_cast<unsigned>(groups.size()), *sizes.begin(), left};
  };
  CHECK(counts(1, 0) == (is_90 ? std::array{16u, 8u, 4u} : std::array{33u, 4u, 0u}));
  CHECK(counts(9, 0) == (is_90 ? std::array{8u, 16u, 4u} : std::array{13u, 10u, 2u}));
  CHECK(counts(3, 1) == std::array{33u, 4u, 0u});
  CHECK(counts(132, 1) == std::array{1u, 132u, 0u});
  unsigned count = 0;
  CHECK(device.api.cuDevSmResourceSplitByCount(nullptr, &count, &device.whole, nullptr, 0, 64) ==
        CUDA_SUCCESS);
  CHECK(count == 2);
}

TEST_CASE("sim green context: wrong splits and descriptors are refused") {
  GreenDevice device;
  const DriverApi& api = device.api;
  std::vector<CUdevResource> groups(4), others(4);
  CHECK(device.split(groups, 133) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(device.split(groups, 8, nullptr, 4) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(device.split(groups, 8) == CUDA_SUCCESS);
  REQUIRE(device.split(others, 8) == CUDA_SUCCESS);
  unsigned count = 1;
  CUdevResource part{}, none{};
  CHECK(api.cuDevSmResourceSplitByCount(&part, &count, &groups[0], nullptr, 0, 4) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);  // not again without a green context
  CHECK(api.cuDevSmResourceSplitByCount(&part, &count, &none, nullptr, 0, 4) ==
        CUDA_ERROR_INVALID_RESOURCE_TYPE);
  CUdevResourceDesc descriptor = nullptr;
  CHECK(api.cuDevResourceGenerateDesc(&descriptor, groups.data(), 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuDevResourceGenerateDesc(&descriptor, &none, 1) == CUDA_ERROR_INVALID_RESOURCE_TYPE);
  std::array mixed{groups[0], others[1]};
  CHECK(api.cuDevResourceGenerateDesc(&descriptor, mixed.data(), 2) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  std::array twice{groups[0], groups[0]};
  CHECK(api.cuDevResourceGenerateDesc(&descriptor, twice.data(), 2) ==
        CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CUgreenCtx green = nullptr;
  REQUIRE(api.cuDevResourceGenerateDesc(&descriptor, groups.data(), 1) == CUDA_SUCCESS);
  CHECK(api.cuGreenCtxCreate(&green, descriptor, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuGreenCtxCreate(&green, nullptr, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuGreenCtxDestroy(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("sim green context: kernels of its streams run on its multiprocessors, each once") {
  const InIssueOrder order;
  const GreenDevice device;
  const DriverApi& api = device.api;
  std::vector<CUdevResource> groups(3);
  CUdevResource rest{};
  REQUIRE(device.split(groups, 8, &rest) == CUDA_SUCCESS);
  const CUgreenCtx first = device.green({groups[0], groups[2]}), second = device.green({groups[1]});
  const CUstream a = device.stream(first), b = device.stream(second);
  const std::set<unsigned> here = device.places(a), there = device.places(b);
  CHECK(here.size() == 16);
  CHECK(there.size() == 8);
  for (const unsigned place : there) CHECK(!here.contains(place));
  CHECK(device.places(nullptr).size() == 132);
  CUdevResource given{};
  CHECK(api.cuGreenCtxGetDevResource(first, &given, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS);
  CHECK(given.sm.smCount == 16);
  unsigned count = 2;
  std::array<CUdevResource, 2> halves{};
  CHECK(api.cuDevSmResourceSplitByCount(halves.data(), &count, &given, nullptr, 0, 8) ==
        CUDA_SUCCESS);
  CHECK(count == 2);
  const auto as_handle = reinterpret_cast<CUcontext>(first);
  CHECK(api.cuCtxSetCurrent(as_handle) == CUDA_ERROR_INVALID_CONTEXT);
  CUcontext primary = nullptr, context = nullptr;
  CHECK(api.cuCtxGetCurrent(&primary) == CUDA_SUCCESS);
  CHECK(api.cuCtxFromGreenCtx(&context, first) == CUDA_SUCCESS);
  CHECK(context == as_handle);
  CHECK(api.cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(api.cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  CUgreenCtx found = nullptr;
  CHECK(api.cuStreamGetGreenCtx(a, &found) == CUDA_SUCCESS);
  CHECK(found == first);
  CHECK(api.cuStreamGetGreenCtx(nullptr, &found) == CUDA_SUCCESS);
  CHECK(found == nullptr);
  for (const CUstream stream : {a, b}) CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  for (const CUgreenCtx one : {first, second}) CHECK(api.cuGreenCtxDestroy(one) == CUDA_SUCCESS);
}

TEST_CASE("sim green context: after its end its streams fail, and so do graphs captured there") {
  const InIssueOrder order;
  const GreenDevice device;
  const DriverApi& api = device.api;
  std::vector<CUdevResource> groups(1);
  REQUIRE(device.split(groups, 8) == CUDA_SUCCESS);
  const CUgreenCtx green = device.green(groups);
  const CUstream stream = device.stream(green);
  CUdeviceptr x = device.allocate(4);
  void* parameters[] = {&x};
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  REQUIRE(api.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
  REQUIRE(api.cuLaunchKernel(device.where, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr) ==
          CUDA_SUCCESS);
  REQUIRE(api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(api.cuGraphInstantiateWithFlags(&executable, graph, 0) == CUDA_SUCCESS);
  CHECK(api.cuGraphLaunch(executable, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuGreenCtxDestroy(green) == CUDA_SUCCESS);
  CHECK(api.cuGreenCtxDestroy(green) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(api.cuStreamSynchronize(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(api.cuStreamDestroy(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(api.cuGraphLaunch(executable, nullptr) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(api.cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  CHECK(api.cuGraphDestroy(graph) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(x) == CUDA_SUCCESS);
}
