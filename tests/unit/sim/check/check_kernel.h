// Runs a few instructions as a kernel under checks.
#pragma once

#include "driver/driver_rows.h"
#include "sim/checks.h"
#include "unit/sim/device/device_fixture.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace kernwright::sim::testing {

/// A kernel on a buffer of zeros at %rd1; %r1 = thread, %r2 = block, %rd2 = address of the thread's
/// word, %r3 = address of the thread's word in shared memory, %r4 = that of the other half.
inline std::string kernel(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n"
         ".reg .b32 %r<30>;\n.reg .b64 %rd<9>;\n.shared .align 16 .b8 s[8192];\n"
         "ld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd1, %rd1;\n"
         "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r20, s;\n"
         "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd2, %rd1;\n"
         "shl.b32 %r3, %r1, 2;\nadd.s32 %r3, %r3, %r20;\n"
         "xor.b32 %r4, %r1, 1;\nshl.b32 %r4, %r4, 2;\nadd.s32 %r4, %r4, %r20;\n"
         "xor.b32 %r5, %r1, 32;\nshl.b32 %r5, %r5, 2;\nadd.s32 %r5, %r5, %r20;\n" +
         body + "ret;\n}\n";
}

struct Shape {
  unsigned grid = 1, block = 64;
  bool cooperative = false;
};

inline std::vector<Finding> run(const std::string& body, Shape shape = {},
                                CheckSet checks = {false, true, false}) {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const CheckScope scope(checks);
  CUmodule module = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, kernel(body).c_str()) == CUDA_SUCCESS);
  CUfunction function = nullptr;
  REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  CUdeviceptr buffer = 0;
  REQUIRE(api.cuMemAlloc(&buffer, 8192) == CUDA_SUCCESS);
  REQUIRE(api.cuMemsetD8(buffer, 0, 8192) == CUDA_SUCCESS);
  void* parameters[] = {&buffer};
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{shape.grid, 1, 1, shape.block, 1, 1, 0, nullptr, nullptr, 0};
  if (shape.cooperative) {
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  CHECK(api.cuLaunchKernelEx(&config, function, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuMemFree(buffer) == CUDA_SUCCESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
  return scope.findings();
}

inline bool races(const std::string& body, Shape shape = {}) {
  const auto findings = run(body, shape);
  for (const Finding& finding : findings) {
    INFO(finding.to_string());
    CHECK(finding.fault.kind == FaultKind::race);
  }
  return !findings.empty();
}

}  // namespace kernwright::sim::testing
