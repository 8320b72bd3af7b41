// Memory, copies and fills of the simulated driver.
#include "unit/sim/device/device_fixture.h"

#include <cstring>
#include <numeric>
#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

TEST_CASE("sim memory: allocate, inform, free, and the ways to get it wrong") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  std::size_t free_before = 0, free_now = 0, total = 0;
  REQUIRE(api.cuMemGetInfo(&free_before, &total) == CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CHECK(api.cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemAlloc(nullptr, 16) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemAlloc(&address, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(api.cuMemAlloc(&address, ~std::size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(api.cuMemAlloc(&address, 8192) == CUDA_SUCCESS);
  CHECK(api.cuMemGetInfo(&free_now, &total) == CUDA_SUCCESS);
  CHECK(free_before - free_now == 8192);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CHECK(api.cuMemGetAddressRange(&base, &bytes, address + 100) == CUDA_SUCCESS);
  CHECK(base == address);
  CHECK(bytes == 8192);
  CHECK(api.cuMemGetAddressRange(&base, &bytes, address + 8192) == CUDA_ERROR_NOT_FOUND);
  CHECK(api.cuMemFree(address + 256) == CUDA_ERROR_INVALID_VALUE);
  CHECK(device.report().kind == FaultKind::bounds);
  CHECK(api.cuMemFree(address) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  const Fault report = device.report();
  CHECK(report.kind == FaultKind::use_after_free);
  CHECK(report.message.find("cuMemFree of 0x") == 0);
  CHECK(api.cuMemFree(0) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(reinterpret_cast<CUdeviceptr>(&device)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim memory: copies go every way and keep every byte") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  std::vector<int> values(1000);
  std::iota(values.begin(), values.end(), 5);
  const std::size_t bytes = values.size() * sizeof(int);
  const CUdeviceptr a = device.upload(values), b = device.allocate(bytes);
  CUstream stream = nullptr;
  REQUIRE(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyDtoD(b, a, bytes) == CUDA_SUCCESS);
  CHECK(device.download<int>(b, 1000) == values);
  CHECK(api.cuMemcpyHtoDAsync(b + 4, values.data(), 8, stream) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyDtoDAsync(a, b, 16, stream) == CUDA_SUCCESS);
  int four[4] = {};
  CHECK(api.cuMemcpyDtoHAsync(four, a, 16, stream) == CUDA_SUCCESS);
  CHECK(four[0] == 5);
  CHECK(four[1] == 5);
  CHECK(four[2] == 6);
  CHECK(four[3] == 8);
  const auto host = reinterpret_cast<CUdeviceptr>(four);
  CHECK(api.cuMemcpyAsync(host, a + 40, 8, stream) == CUDA_SUCCESS);
  CHECK(four[0] == 15);
  four[0] = 77;
  CHECK(api.cuMemcpyAsync(b, host, 4, nullptr) == CUDA_SUCCESS);
  CHECK(device.download<int>(b, 1)[0] == 77);
  CHECK(api.cuMemcpyDtoD(a + 4, a, 12) == CUDA_SUCCESS);  // overlapping
  CHECK(device.download<int>(a, 4) == std::vector<int>{5, 5, 5, 6});
  CHECK(api.cuMemcpyHtoD(a, nullptr, 0) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyPeer(b, device.context, a, device.context, 16) == CUDA_SUCCESS);
  CHECK(device.download<int>(b, 4) == std::vector<int>{5, 5, 5, 6});
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
}

TEST_CASE("sim memory: a copy outside an allocation is refused with a report, nothing is written") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr a = device.upload(std::vector<int>(16, 3));
  std::vector<int> host(32, 9);
  CHECK(api.cuMemcpyHtoD(a + 4, host.data(), 64) == CUDA_ERROR_INVALID_VALUE);
  Fault report = device.report();
  CHECK(report.kind == FaultKind::bounds);
  CHECK(report.address == a + 4);
  CHECK(report.access_size == 64);
  CHECK(report.message.find("cuMemcpyHtoD writes 64 bytes at 0x") == 0);
  CHECK(report.message.find("the last 4 of the 64 bytes lie past the end") != std::string::npos);
  CHECK(device.report().kind == FaultKind::none);  // handed out once
  CHECK(device.download<int>(a, 16) == std::vector<int>(16, 3));
  CHECK(api.cuMemcpyDtoH(host.data(), a, 65) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoH(nullptr, a, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoH(reinterpret_cast<void*>(a), a, 4) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host.data()), host.data(), 4) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyHtoD(0, host.data(), 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemcpyDtoD(a, a, ~std::size_t{0}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFree(a) == CUDA_SUCCESS);
  CHECK(api.cuMemcpyDtoH(host.data(), a, 4) == CUDA_ERROR_INVALID_VALUE);
  report = device.report();
  CHECK(report.kind == FaultKind::use_after_free);
  CHECK(api.cuMemcpyDtoH(host.data(), a, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamQuery(reinterpret_cast<CUstream>(std::uintptr_t{0xdead})) ==
        CUDA_ERROR_INVALID_HANDLE);
  CHECK(device.report().kind == FaultKind::none);  // a later failure has no stale report
}

TEST_CASE("sim memory: fills of every width, in one and two dimensions") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const CUdeviceptr a = device.allocate(64);
  CHECK(api.cuMemsetD8(a, 0x11, 64) == CUDA_SUCCESS);
  CHECK(api.cuMemsetD16(a + 2, 0x2233, 3) == CUDA_SUCCESS);
  CHECK(api.cuMemsetD32Async(a + 8, 0x44556677, 2, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemsetD2D8(a + 20, 8, 0x99, 3, 4) == CUDA_SUCCESS);
  const auto got = device.download<unsigned char>(a, 64);
  std::vector<unsigned char> expected(64, 0x11);
  for (int i = 0; i < 3; ++i) {
    expected[static_cast<std::size_t>(2 + 2 * i)] = 0x33;
    expected[static_cast<std::size_t>(3 + 2 * i)] = 0x22;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const unsigned char word[] = {0x77, 0x66, 0x55, 0x44};
    std::memcpy(expected.data() + 8 + 4 * i, word, 4);
  }
  for (std::size_t y = 0; y < 4; ++y) std::memset(expected.data() + 20 + 8 * y, 0x99, 3);
  CHECK(got == expected);
  CHECK(api.cuMemsetD32(a + 2, 0, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD32(a, 0, 17) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD32(a, 0, ~std::size_t{0} / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD2D8(a, 2, 0, 3, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD2D32(a, 32, 1, 8, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD2D16(a, ~std::size_t{0} - 1, 1, 8, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemsetD8(a, 1, 0) == CUDA_SUCCESS);
  CHECK(device.download<unsigned char>(a, 64) == expected);
}

TEST_CASE("sim memory: page-locked and registered host memory, and what pointers tell") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  void* pinned = nullptr;
  REQUIRE(api.cuMemHostAlloc(&pinned, 4096, kMemHostAllocDeviceMap) == CUDA_SUCCESS);
  std::memset(pinned, 1, 4096);
  CUdeviceptr mapped = 0;
  CHECK(api.cuMemHostGetDevicePointer(&mapped, pinned, 0) == CUDA_SUCCESS);
  CHECK(mapped == reinterpret_cast<CUdeviceptr>(pinned));
  unsigned type = 0;
  CHECK(api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, mapped + 10) ==
        CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  const CUdeviceptr a = device.allocate(100);
  CHECK(api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  int ordinal = -1;
  CHECK(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a) ==
        CUDA_SUCCESS);
  CHECK(ordinal == 0);
  std::vector<char> host(1000);
  CHECK(api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  reinterpret_cast<CUdeviceptr>(host.data())) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemHostRegister(host.data(), host.size(), 0) == CUDA_SUCCESS);
  CHECK(api.cuMemHostRegister(host.data(), host.size(), 0) ==
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                      CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  std::size_t size = 0;
  void* values[] = {&type, &size};
  CHECK(api.cuPointerGetAttributes(2, attributes, values,
                                   reinterpret_cast<CUdeviceptr>(host.data())) == CUDA_SUCCESS);
  CHECK(type == CU_MEMORYTYPE_HOST);
  CHECK(size == 1000);
  CHECK(api.cuMemFreeHost(host.data()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemHostUnregister(host.data()) == CUDA_SUCCESS);
  CHECK(api.cuMemHostUnregister(host.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(api.cuPointerGetAttributes(2, attributes, values,
                                   reinterpret_cast<CUdeviceptr>(host.data())) == CUDA_SUCCESS);
  CHECK(type == 0);
  CHECK(api.cuMemFree(mapped) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFreeHost(reinterpret_cast<void*>(a)) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemFreeHost(pinned) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeHost(pinned) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr managed = 0;
  CHECK(api.cuMemAllocManaged(&managed, 64, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  *reinterpret_cast<int*>(managed) = 42;
  CHECK(device.download<int>(managed, 1)[0] == 42);
  unsigned is_managed = 0;
  CHECK(api.cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed) ==
        CUDA_SUCCESS);
  CHECK(is_managed == 1);
  CHECK(api.cuMemFree(managed) == CUDA_SUCCESS);
}

TEST_CASE("sim memory: stream-ordered allocations and their pools") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUmemoryPool pool = nullptr;
  REQUIRE(api.cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  cuuint64_t number = 12345;
  CHECK(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &number) ==
        CUDA_SUCCESS);
  number = 0;
  CHECK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &number) ==
        CUDA_SUCCESS);
  CHECK(number == 12345);
  CHECK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &number) == CUDA_SUCCESS);
  const cuuint64_t before = number;
  CUdeviceptr a = 0;
  REQUIRE(api.cuMemAllocAsync(&a, 1000, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &number) == CUDA_SUCCESS);
  CHECK(number == before + 1000);
  CHECK(api.cuMemFreeAsync(a, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeAsync(a, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &number) == CUDA_SUCCESS);
  CHECK(number == before);
  CHECK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &number) == CUDA_SUCCESS);
  CHECK(number >= before + 1000);
  CHECK(api.cuMemAllocAsync(&a, 16, reinterpret_cast<CUstream>(std::uintptr_t{0x99})) ==
        CUDA_ERROR_INVALID_HANDLE);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool own = nullptr;
  REQUIRE(api.cuMemPoolCreate(&own, &properties) == CUDA_SUCCESS);
  REQUIRE(api.cuMemAllocFromPoolAsync(&a, 64, own, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemPoolTrimTo(own, 0) == CUDA_SUCCESS);
  CHECK(api.cuMemFreeAsync(a, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuMemPoolDestroy(own) == CUDA_SUCCESS);
  CHECK(api.cuMemPoolDestroy(own) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim memory: many threads allocate, copy and free at once") {
  CurrentDevice device;
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      const DriverApi& api = device.api;
      api.cuCtxSetCurrent(device.context);
      for (int i = 0; i < 200; ++i) {
        const int value = static_cast<int>(t) * 1000 + i;
        int back = -1;
        CUdeviceptr a = 0;
        const bool good = api.cuMemAllocAsync(&a, 64, nullptr) == CUDA_SUCCESS &&
                          api.cuMemcpyHtoD(a, &value, 4) == CUDA_SUCCESS &&
                          api.cuMemcpyDtoH(&back, a, 4) == CUDA_SUCCESS && back == value &&
                          api.cuMemFreeAsync(a, nullptr) == CUDA_SUCCESS;
        if (!good) ++failures[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(4, 0));
}
