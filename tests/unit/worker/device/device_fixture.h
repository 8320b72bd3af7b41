// A device behind the tests' own worker program, and kernels for it.
#pragma once

#include "tests/unit/worker/worker_fixture.h"
#include "worker/device/remote_device.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace worker_test {

/// Of the machine's first GPU, else simulated; changes of the environment may say otherwise.
inline kernwright::RemoteDeviceOptions device_options(std::vector<std::string> environment = {}) {
  kernwright::RemoteDeviceOptions options{.worker = test_program()};
  options.worker.environment = std::move(environment);
  return options;
}

inline kernwright::RemoteDeviceOptions simulated(std::vector<std::string> environment = {}) {
  environment.emplace_back("KERNWRIGHT_DEVICE=sim");
  return device_options(std::move(environment));
}

/// Compiled for the device.
kernwright::ObjectCode code_for(kernwright::RemoteDevice& device, const std::string& text);

/// The kernel `k` of the text.
inline kernwright::RemoteKernel load(kernwright::RemoteDevice& device, const std::string& text) {
  return device.load(code_for(device, text), "k");
}

template <typename T>
kernwright::RemoteBuffer upload(kernwright::RemoteDevice& device, const std::vector<T>& values,
                                std::uint64_t guard_bytes = 0) {
  const auto bytes = std::as_bytes(std::span(values));
  const kernwright::RemoteBuffer buffer = device.allocate(bytes.size(), guard_bytes);
  device.write(buffer, bytes);
  return buffer;
}

template <typename T>
std::vector<T> download(kernwright::RemoteDevice& device, const kernwright::RemoteBuffer& buffer) {
  std::vector<T> values(buffer.bytes / sizeof(T));
  device.read(buffer, std::as_writable_bytes(std::span(values)));
  return values;
}

/// One block of `threads` threads with a buffer and a number.
inline kernwright::RemoteLaunch launch_of(const kernwright::RemoteKernel& kernel, unsigned threads,
                                          const kernwright::RemoteBuffer& buffer, int number) {
  return {.kernel = kernel,
          .grid = {1},
          .block = {threads},
          .arguments = {kernwright::RemoteArgument::at(buffer),
                        kernwright::RemoteArgument::of(number)}};
}

/// x[i] += n, for as many threads as are launched.
inline constexpr const char* kAdd = R"(
extern "C" __global__ void k(int* x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] += n; })";

/// Writes far outside of everything.
inline constexpr const char* kWild = R"(
extern "C" __global__ void k(int* x, int n) { x[(1ull << 40) + n] = 1; })";

/// Ends when somebody changes x[0], which nobody does.
inline constexpr const char* kEndless = R"(
extern "C" __global__ void k(volatile int* x, int n) { while (x[0] == n) {} })";

}  // namespace worker_test
