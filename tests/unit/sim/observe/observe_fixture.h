// PTX kernels on the simulated driver, for tests of what watches them.
#pragma once

#include "sim/trace.h"
#include "unit/sim/device/device_fixture.h"

#include <optional>
#include <string>
#include <vector>

namespace kernwright::sim {

/// A kernel `k(.param .u64 p)` with registers to spare, a buffer of zeros at %rd1 and %r1 =
/// threadIdx.x; `before` are functions in front of it.
class WatchedKernel {
 public:
  explicit WatchedKernel(const std::string& body, const std::string& before = {}) {
    const std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
        ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n"
        ".reg .b32 %r<30>;\n.reg .b64 %rd<19>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n"
        ".shared .align 16 .b8 s[4096];\n.local .align 8 .b8 l[64];\n"
        "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n" +
        body + "ret;\n}\n";
    const CUresult loaded = device.api.cuModuleLoadData(&module_, text.c_str());
    INFO(device.report().to_string());
    REQUIRE(loaded == CUDA_SUCCESS);
    REQUIRE(device.api.cuModuleGetFunction(&function, module_, "k") == CUDA_SUCCESS);
    buffer = device.upload(std::vector<std::uint32_t>(kWords, 0));
  }
  ~WatchedKernel() {
    CHECK(device.api.cuMemFree(buffer) == CUDA_SUCCESS);
    CHECK(device.api.cuModuleUnload(module_) == CUDA_SUCCESS);
  }
  WatchedKernel(const WatchedKernel&) = delete;
  WatchedKernel& operator=(const WatchedKernel&) = delete;

  CUresult launch(unsigned grid = 1, unsigned block = 32) {
    void* parameters[] = {&buffer};
    return device.api.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, nullptr, parameters,
                                     nullptr);
  }
  /// The trace of one launch, which may fail.
  Trace trace(TraceRequest request, unsigned grid = 1, unsigned block = 32) {
    request.function = function;
    const TraceScope scope(request);
    (void)launch(grid, block);
    return scope.trace();
  }
  Trace trace(unsigned thread = 0, unsigned block = 32) {
    TraceRequest request;
    request.thread = {thread, 0, 0};
    return trace(request, 1, block);
  }

  static constexpr std::size_t kWords = 1 << 14;
  CurrentDevice device;
  CUfunction function = nullptr;
  CUdeviceptr buffer = 0;

 private:
  CUmodule module_ = nullptr;
};

/// Steps of that opcode.
inline std::vector<TraceStep> steps_of(const Trace& trace, const std::string& opcode) {
  std::vector<TraceStep> found;
  for (const TraceStep& step : trace.steps) {
    if (step.instruction.find(opcode) != std::string::npos) found.push_back(step);
  }
  return found;
}

}  // namespace kernwright::sim
