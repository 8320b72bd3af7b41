// A kernel for the driver of tests, which runs nothing.
#pragma once

#include "core/device.h"
#include "core/kernel.h"
#include "core/module.h"
#include "unit/core/fake_driver.h"

namespace kernwright::testing {

inline constexpr Pointer kMemory{0x1000};

/// add(float* p, int n)
inline Kernel add_kernel(Device& device) {
  FakeDriver::get().kernels = {{.name = "add", .parameter_sizes = {8, 4}}};
  KernelSignature signature{.name = "add", .lowered = "add", .parameters = {}};
  signature.parameters = {{.name = "p", .type = "float*", .kind = ParameterKind::pointer},
                          {.name = "n", .type = "int", .scalar = ScalarType::int32}};
  return {Module::load(device, ".version 8.0"), signature};
}

}  // namespace kernwright::testing
