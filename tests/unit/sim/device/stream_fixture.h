// Streams of the simulated driver under a seed, with kernels whose order shows in the result.
#pragma once

#include "base/env.h"
#include "unit/sim/device/device_fixture.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace kernwright::sim {

/// While this lives, work waits in its stream, and an open order is no finding; afterwards the
/// settings of the environment are in force.
class Seeded {
 public:
  explicit Seeded(std::uint64_t seed) {
    set_schedule_seed(seed);
    set_stream_checks(false);
  }
  ~Seeded() { restore(); }
  Seeded(const Seeded&) = delete;
  Seeded& operator=(const Seeded&) = delete;
  static void restore() {
    std::optional<std::uint64_t> seed;
    if (env_is_set(Env::sim_seed)) seed = env_number(Env::sim_seed);
    set_schedule_seed(seed);
    const auto checks = env_list(Env::checks);
    set_stream_checks(std::find(checks.begin(), checks.end(), "streams") != checks.end());
  }
};

/// Work runs when it is issued while this lives.
class InIssueOrder {
 public:
  InIssueOrder() {
    set_schedule_seed(std::nullopt);
    set_stream_checks(false);
  }
  ~InIssueOrder() { Seeded::restore(); }
  InIssueOrder(const InIssueOrder&) = delete;
  InIssueOrder& operator=(const InIssueOrder&) = delete;
};

/// push(x, v): *x = *x * 31 + v, in one thread. broken(): stores to the null pointer. each(x, v):
/// thread i of the block stores v to x[i]. count(x): every thread adds 1 to *x atomically.
inline constexpr char kStreamKernels[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry push(.param .u64 x, .param .u32 v)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [v];
  ld.global.u32 %r2, [%rd1];
  mad.lo.u32 %r3, %r2, 31, %r1;
  st.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry broken()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 0;
  mov.u32 %r1, 0;
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry each(.param .u64 x, .param .u32 v)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [v];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
.visible .entry count(.param .u64 x)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [x];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
)";

/// A current device with the kernels above loaded.
class StreamDevice : public CurrentDevice {
 public:
  explicit StreamDevice(int ordinal = 0) : CurrentDevice(ordinal) {
    REQUIRE(api.cuModuleLoadData(&module, kStreamKernels) == CUDA_SUCCESS);
    for (auto [function, name] : {std::pair{&push_kernel, "push"},
                                  {&broken_kernel, "broken"},
                                  {&each_kernel, "each"},
                                  {&count_kernel, "count"}}) {
      REQUIRE(api.cuModuleGetFunction(function, module, name) == CUDA_SUCCESS);
    }
  }
  ~StreamDevice() {
    api.cuCtxSynchronize();
    if (module != nullptr) api.cuModuleUnload(module);
  }

  CUresult push(CUstream stream, CUdeviceptr x, std::uint32_t value) const {
    void* parameters[] = {&x, &value};
    return api.cuLaunchKernel(push_kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult broken(CUstream stream) const {
    return api.cuLaunchKernel(broken_kernel, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  }
  CUresult each(CUstream stream, CUdeviceptr x, std::uint32_t value, unsigned threads) const {
    void* parameters[] = {&x, &value};
    return api.cuLaunchKernel(each_kernel, 1, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  }
  CUresult count(CUstream stream, CUdeviceptr x) const {
    void* parameters[] = {&x};
    return api.cuLaunchKernel(count_kernel, 2, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  }
  CUstream stream(unsigned flags = CU_STREAM_NON_BLOCKING) const {
    CUstream result = nullptr;
    REQUIRE(api.cuStreamCreate(&result, flags) == CUDA_SUCCESS);
    return result;
  }
  CUevent event(unsigned flags = CU_EVENT_DISABLE_TIMING) const {
    CUevent result = nullptr;
    REQUIRE(api.cuEventCreate(&result, flags) == CUDA_SUCCESS);
    return result;
  }
  /// Zeroed, and so before anything else happens.
  CUdeviceptr words(std::size_t count) const {
    const CUdeviceptr result = allocate(4 * count);
    REQUIRE(api.cuMemsetD32(result, 0, count) == CUDA_SUCCESS);
    REQUIRE(api.cuCtxSynchronize() == CUDA_SUCCESS);
    return result;
  }
  std::uint32_t word(CUdeviceptr address) const { return download<std::uint32_t>(address, 1)[0]; }

  CUmodule module = nullptr;
  CUfunction push_kernel = nullptr, broken_kernel = nullptr;
  CUfunction each_kernel = nullptr, count_kernel = nullptr;
};

/// The result of push() with each value in turn on `x`.
inline std::uint32_t pushed(std::initializer_list<std::uint32_t> values, std::uint32_t x = 0) {
  for (const std::uint32_t value : values) x = x * 31 + value;
  return x;
}

}  // namespace kernwright::sim
