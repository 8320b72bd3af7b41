// Four simulated devices: separate memories, copies between them, and access by kernels.
#include "unit/sim/device/stream_fixture.h"

#include <cstdlib>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

// The platform reads the environment when the first test calls cuInit.
const int g_four_devices = setenv("KERNWRIGHT_SIM_DEVICES", "4", 1);

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

struct FourDevices {
  FourDevices() {
    REQUIRE(g_four_devices == 0);
    int count = 0;
    REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(api.cuDeviceGetCount(&count) == CUDA_SUCCESS);
    REQUIRE(count == 4);
  }
  const DriverApi& api = driver_api();
};

}  // namespace

TEST_CASE("sim peers: devices tell themselves apart") {
  const FourDevices four;
  char bus[16];
  CUuuid first{}, second{};
  CHECK(four.api.cuDeviceGetPCIBusId(bus, sizeof bus, 1) == CUDA_SUCCESS);
  CHECK(std::string(bus) == "0000:01:00.0");
  CHECK(four.api.cuDeviceGetUuid(&first, 0) == CUDA_SUCCESS);
  CHECK(four.api.cuDeviceGetUuid(&second, 1) == CUDA_SUCCESS);
  CHECK(std::string(first.bytes, 16) != std::string(second.bytes, 16));
  int can = -1;
  CHECK(four.api.cuDeviceCanAccessPeer(&can, 0, 1) == CUDA_SUCCESS);
  CHECK(can == 1);
  CHECK(four.api.cuDeviceCanAccessPeer(&can, 1, 1) == CUDA_SUCCESS);
  CHECK(can == 0);
  CHECK(four.api.cuDeviceCanAccessPeer(&can, 0, 4) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("sim peers: copies go between devices, and the contexts must fit the addresses") {
  const FourDevices four;
  CurrentDevice second(1);
  CurrentDevice first(0);
  const CUdeviceptr a = first.upload(std::vector<int>{1, 2, 3, 4});
  REQUIRE(four.api.cuCtxPushCurrent(second.context) == CUDA_SUCCESS);
  const CUdeviceptr b = second.allocate(16);
  int ordinal = -1;
  CHECK(four.api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b) ==
        CUDA_SUCCESS);
  CHECK(ordinal == 1);
  CHECK(four.api.cuMemcpyPeer(b, second.context, a, first.context, 16) == CUDA_SUCCESS);
  CHECK(second.download<int>(b, 4) == std::vector<int>{1, 2, 3, 4});
  CHECK(four.api.cuMemcpyPeer(b, first.context, a, second.context, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(four.api.cuMemcpyPeerAsync(b, second.context, a, first.context, 17, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(four.api.cuMemcpyDtoD(b, a, 8) == CUDA_SUCCESS);  // unified addressing knows both
  REQUIRE(four.api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("sim peers: a kernel reaches another device's memory only while access is enabled") {
  const FourDevices four;
  const DriverApi& api = four.api;
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
  const Fault report = first.report();
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.message.find("memory of device 1, to which device 0 has no peer access") !=
        std::string::npos);
  CHECK(report.details.find("cuCtxEnablePeerAccess") != std::string::npos);
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
  const FourDevices four;
  CurrentDevice second(1);
  void* pinned = nullptr;
  REQUIRE(four.api.cuMemHostAlloc(&pinned, 64, 0) == CUDA_SUCCESS);
  static_cast<int*>(pinned)[3] = 11;
  {
    CurrentDevice first(0);
    CUmodule module = nullptr;
    CUfunction copy = nullptr;
    REQUIRE(four.api.cuModuleLoadData(&module, kCopy) == CUDA_SUCCESS);
    REQUIRE(four.api.cuModuleGetFunction(&copy, module, "copy") == CUDA_SUCCESS);
    CUdeviceptr a = first.allocate(16), from = reinterpret_cast<CUdeviceptr>(pinned);
    void* parameters[] = {&a, &from};
    CHECK(four.api.cuLaunchKernel(copy, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_SUCCESS);
    CHECK(first.download<int>(a, 4)[3] == 11);
  }
  CHECK(four.api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
}

TEST_CASE("sim peers: all pairs, what links say, and copies around a ring in any order") {
  const FourDevices four;
  const DriverApi& api = four.api;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      int can = -1, value = -1;
      REQUIRE(api.cuDeviceCanAccessPeer(&can, from, to) == CUDA_SUCCESS);
      CHECK(can == (from != to));
      CHECK(
          api.cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, from, to) ==
          (from == to ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS));
      if (from != to) CHECK(value == 1);
    }
  }
  int value = 0;
  CHECK(api.cuDeviceGetP2PAttribute(&value, static_cast<CUdevice_P2PAttribute>(9), 0, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CurrentDevice devices[] = {CurrentDevice(0), CurrentDevice(1), CurrentDevice(2),
                               CurrentDevice(3)};
    CUdeviceptr memory[4] = {};
    CUstream streams[4] = {};
    CUevent events[4] = {};
    for (int i = 0; i < 4; ++i) {
      REQUIRE(api.cuCtxPushCurrent(devices[i].context) == CUDA_SUCCESS);
      memory[i] = devices[i].upload(std::vector<int>{i, 10 * i});
      REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
      REQUIRE(api.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
      REQUIRE(api.cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
      REQUIRE(api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
    }
    {
      const Seeded seeded(seed);
      for (int i = 0; i < 3; ++i) {  // 0 -> 1 -> 2 -> 3, each on the stream of its target
        if (i > 0) REQUIRE(api.cuStreamWaitEvent(streams[i + 1], events[i], 0) == CUDA_SUCCESS);
        REQUIRE(api.cuMemcpyPeerAsync(memory[i + 1], devices[i + 1].context, memory[i],
                                      devices[i].context, 8, streams[i + 1]) == CUDA_SUCCESS);
        REQUIRE(api.cuEventRecord(events[i + 1], streams[i + 1]) == CUDA_SUCCESS);
      }
      REQUIRE(api.cuEventSynchronize(events[3]) == CUDA_SUCCESS);
      for (int i = 0; i < 4; ++i) CHECK(devices[0].download<int>(memory[i], 2)[0] == 0);
    }
    for (int i = 0; i < 4; ++i) {
      api.cuStreamDestroy(streams[i]);
      api.cuEventDestroy(events[i]);
      REQUIRE(api.cuCtxPushCurrent(devices[i].context) == CUDA_SUCCESS);
      REQUIRE(api.cuMemFree(memory[i]) == CUDA_SUCCESS);
      REQUIRE(api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
    }
  }
}

TEST_CASE("sim managed: host and every device use the same memory at the same address") {
  const FourDevices four;
  const DriverApi& api = four.api;
  CUdeviceptr managed = 0;
  {
    CurrentDevice first(0);
    REQUIRE(api.cuMemAllocManaged(&managed, 32, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
    auto* const host = reinterpret_cast<int*>(managed);
    for (int i = 0; i < 4; ++i) host[i] = 7 * i;
    for (const int ordinal : {0, 3}) {
      CurrentDevice device(ordinal);
      CUmodule module = nullptr;
      CUfunction copy = nullptr;
      REQUIRE(api.cuModuleLoadData(&module, kCopy) == CUDA_SUCCESS);
      REQUIRE(api.cuModuleGetFunction(&copy, module, "copy") == CUDA_SUCCESS);
      CUdeviceptr to = managed + 16, from = managed;
      void* parameters[] = {&to, &from};
      REQUIRE(api.cuMemPrefetchAsync(managed, 32, ordinal, nullptr) == CUDA_SUCCESS);
      REQUIRE(api.cuLaunchKernel(copy, 1, 1, 1, 4, 1, 1, 0, nullptr, parameters, nullptr) ==
              CUDA_SUCCESS);
      REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
      for (int i = 0; i < 4; ++i) CHECK(host[4 + i] == host[i]);
      for (int i = 0; i < 4; ++i) host[i] += 1;
      CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
    }
    CHECK(api.cuMemAdvise(managed, 32, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 2) == CUDA_SUCCESS);
    CHECK(api.cuMemAdvise(managed, 32, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, kDeviceCpu) ==
          CUDA_SUCCESS);
    CHECK(api.cuMemAdvise(managed, 32, CU_MEM_ADVISE_SET_ACCESSED_BY, 4) ==
          CUDA_ERROR_INVALID_DEVICE);
    CHECK(api.cuMemAdvise(managed, 32, static_cast<CUmem_advise>(99), 0) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemPrefetchAsync(managed, 1 << 20, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    const CUdeviceptr plain = first.allocate(16);
    CHECK(api.cuMemPrefetchAsync(plain, 16, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CHECK(api.cuMemFree(plain) == CUDA_SUCCESS);
    CHECK(api.cuMemFree(managed) == CUDA_SUCCESS);
  }
}
