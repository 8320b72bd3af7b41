// Two simulated devices: separate memories, copies between them, and access by kernels.
#include "unit/sim/device_fixture.h"

#include <cstdlib>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

// The platform reads the environment when the first test calls cuInit.
const int g_two_devices = setenv("KERNWRIGHT_SIM_DEVICES", "2", 1);

constexpr char kCopy[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 to, .param .u64 from)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd5];
  st.global.u32 [%rd4], %r2;
  ret;
}
)";

struct TwoDevices {
  TwoDevices() {
    REQUIRE(g_two_devices == 0);
    int count = 0;
    REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(api.cuDeviceGetCount(&count) == CUDA_SUCCESS);
    REQUIRE(count == 2);
  }
  const DriverApi& api = driver_api();
};

}  // namespace

TEST_CASE("sim peers: devices tell themselves apart") {
  const TwoDevices two;
  char bus[16];
  CUuuid first{}, second{};
  CHECK(two.api.cuDeviceGetPCIBusId(bus, sizeof bus, 1) == CUDA_SUCCESS);
  CHECK(std::string(bus) == "0000:01:00.0");
  CHECK(two.api.cuDeviceGetUuid(&first, 0) == CUDA_SUCCESS);
  CHECK(two.api.cuDeviceGetUuid(&second, 1) == CUDA_SUCCESS);
  CHECK(std::string(first.bytes, 16) != std::string(second.bytes, 16));
  int can = -1;
  CHECK(two.api.cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS);
  CHECK(can == 1);
  CHECK(two.api.cuDeviceCanAccessPeer(&can, 1, 1) == CUDA_SUCCESS);
  CHECK(can == 0);
  CHECK(two.api.cuDeviceCanAccessPeer(&can, 0, 2) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("sim peers: copies go between devices, and the contexts must fit the addresses") {
  const TwoDevices two;
  CurrentDevice second(1);
  CurrentDevice first(0);
  const CUdeviceptr a = first.upload(std::vector<int>{1, 2, 3, 4});
  REQUIRE(two.api.cuCtxPushCurrent(second.context) == CUDA_SUCCESS);
  const CUdeviceptr b = second.allocate(16);
  int ordinal = -1;
  CHECK(two.api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b) ==
        CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CHECK(two.api.cuMemcpyPeer(b, second.context, a, first.context, 16) == CUDA_SUCCESS);
  CHECK(second.download<int>(b, 4) == std::vector<int>{1, 2, 3, 4});
  CHECK(two.api.cuMemcpyPeer(b, first.context, a, second.context, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(two.api.cuMemcpyPeerAsync(b, second.context, a, first.context, 17, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(two.api.cuMemcpyDtoD(b, a, 8) == CUDA_SUCCESS);  // unified addressing knows both
  REQUIRE(two.api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("sim peers: a kernel reaches another device's memory only while access is enabled") {
  const TwoDevices two;
  const DriverApi& api = two.api;
  CurrentDevice second(1);
  CUdeviceptr b = second.upload(std::vector<int>{5, 6, 7, 8});
  CurrentDevice first(0);
  CUdeviceptr a = first.allocate(16);
  CUmodule module = nullptr;
  CUfunction copy = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, kCopy) == CUDA_SUCCESS);
  REQUIRE(api.cuModuleGetFunction(&copy, module, "copy") == CUDA_SUCCESS);
  void* parameters[] = {&a, &b};
  const auto launch = [&] {
    const CUresult result =
        api.cuLaunchKernel(copy, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr);
    return result == CUDA_SUCCESS ? api.cuCtxSynchronize() : result;
  };
  CHECK(launch() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(first.report().kind == FaultKind::bounds);
  CHECK(api.cuCtxDisablePeerAccess(second.context) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  CHECK(api.cuCtxEnablePeerAccess(first.context, 0) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(api.cuCtxEnablePeerAccess(second.context, 1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuCtxEnablePeerAccess(second.context, 0) == CUDA_SUCCESS);
  CHECK(api.cuCtxEnablePeerAccess(second.context, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CHECK(launch() == CUDA_SUCCESS);
  CHECK(first.download<int>(a, 4) == std::vector<int>{5, 6, 7, 8});
  REQUIRE(api.cuCtxPushCurrent(second.context) == CUDA_SUCCESS);
  CHECK(launch() == CUDA_ERROR_INVALID_HANDLE);  // the function belongs to the other context
  CHECK(api.cuMemFree(b) == CUDA_SUCCESS);
  REQUIRE(api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(launch() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(first.report().kind == FaultKind::use_after_free);
  CHECK(api.cuCtxDisablePeerAccess(second.context) == CUDA_SUCCESS);
  CHECK(launch() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
}

TEST_CASE("sim peers: host memory is known to every device") {
  const TwoDevices two;
  CurrentDevice second(1);
  void* pinned = nullptr;
  REQUIRE(two.api.cuMemHostAlloc(&pinned, 64, 0) == CUDA_SUCCESS);
  static_cast<int*>(pinned)[3] = 11;
  {
    CurrentDevice first(0);
    CUmodule module = nullptr;
    CUfunction copy = nullptr;
    REQUIRE(two.api.cuModuleLoadData(&module, kCopy) == CUDA_SUCCESS);
    REQUIRE(two.api.cuModuleGetFunction(&copy, module, "copy") == CUDA_SUCCESS);
    CUdeviceptr a = first.allocate(16), from = reinterpret_cast<CUdeviceptr>(pinned);
    void* parameters[] = {&a, &from};
    CHECK(two.api.cuLaunchKernel(copy, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
    CHECK(first.download<int>(a, 4)[3] == 11);
  }
  CHECK(two.api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
}
