// The simulated driver, initialised and with a current context, for tests.
#pragma once

#include "sim/device.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace kernwright::sim {

/// Retains device 0's primary context and makes it current; both end with the object.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal = 0) : ordinal_(ordinal) {
    REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
    REQUIRE(api.cuDevicePrimaryCtxRetain(&context, ordinal) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxPushCurrent(context) == CUDA_SUCCESS);
  }
  ~CurrentDevice() {
    api.cuCtxPopCurrent(nullptr);
    api.cuDevicePrimaryCtxRelease(ordinal_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  CUdeviceptr allocate(std::size_t bytes) const {
    CUdeviceptr address = 0;
    REQUIRE(api.cuMemAlloc(&address, bytes) == CUDA_SUCCESS);
    return address;
  }
  template <typename T>
  CUdeviceptr upload(const std::vector<T>& values) const {
    const CUdeviceptr address = allocate(values.size() * sizeof(T));
    REQUIRE(api.cuMemcpyHtoD(address, values.data(), values.size() * sizeof(T)) == CUDA_SUCCESS);
    REQUIRE(api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
    return address;
  }
  template <typename T>
  std::vector<T> download(CUdeviceptr address, std::size_t count) const {
    std::vector<T> values(count);
    REQUIRE(api.cuMemcpyDtoH(values.data(), address, count * sizeof(T)) == CUDA_SUCCESS);
    return values;
  }
  /// The thread's last finding; kind none when there is none.
  Fault report() const {
    Fault result;
    api.kwTakeReport(context, &result);
    return result;
  }

  const DriverApi& api = driver_api();
  CUcontext context = nullptr;

 private:
  int ordinal_;
};

}  // namespace kernwright::sim
