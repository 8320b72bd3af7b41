// The device that the tests of measuring run on, and kernels with known costs.
#pragma once

#include "core/device.h"
#include "core/runtime.h"
#include "driver/nvrtc_loader.h"
#include "jit/program.h"
#include "memory/buffer.h"
#include "memory/transfer.h"
#include "sim/device.h"
#include "tune/measure/timer.h"
#include "unit/site_packages.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace kernwright::test {

/// The device that KERNWRIGHT_DEVICE names: the first GPU, or the simulated device.
inline Device& device() {
  static Device& chosen = []() -> Device& {
    Runtime::register_sim(&sim::driver_api);
    set_site_packages({testing::site_packages()});
    return Runtime::get().current_device();
  }();
  return chosen;
}

/// For doctest::skip(): some tests need a clock.
inline bool has_no_gpu() {
  const char* const wanted = std::getenv("KERNWRIGHT_DEVICE");
  return wanted == nullptr || !std::string_view(wanted).starts_with("cuda");
}

/// Adds 1 to `count` floats, each thread to every `stride`-th of its own.
class AddOne {
 public:
  explicit AddOne(unsigned count, unsigned stride = 1)
      : kernel_(kernel("__global__ void add_one(float* x, unsigned n, unsigned stride) {\n"
                       "  unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;\n"
                       "  if (i < n) x[i] += 1;\n"
                       "}",
                       "add_one")),
        count_(count),
        stride_(stride),
        stream_(Stream::create(device())),
        memory_(default_resource(device()), std::size_t{4} * count, stream_) {
    clear(stream_);
    stream_.synchronize();
  }

  void clear(const Stream& stream) const {
    fill(device(), memory_.address(), 0, 4, count_, stream);
  }

  TimedWork work() {
    CUdeviceptr address = memory_.address();
    const std::array<void*, 3> arguments = {&address, &count_, &stride_};
    const unsigned threads = (count_ + stride_ - 1) / stride_;
    return launch_work(kernel_.on(device()), {.grid = {(threads + 127) / 128}, .block = {128}},
                       arguments);
  }

  /// What stands at index 0: how often the kernel ran since clear().
  float runs() const {
    float first = 0;
    copy_to_host(device(), &first, memory_.address(), sizeof first);
    return first;
  }

 private:
  LazyKernel kernel_;
  unsigned count_, stride_;
  Stream stream_;
  Buffer memory_;
};

/// Scales 16 MiB, a third of what L2 holds: bound by memory, with few blocks.
class ScaleSome {
 public:
  ScaleSome()
      : kernel_(
            kernel("__global__ void scale(float* x, unsigned n) {\n"
                   "  const unsigned step = gridDim.x * blockDim.x;\n"
                   "  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)\n"
                   "    x[i] = x[i] * 0.5f + 1;\n"
                   "}",
                   "scale")),
        memory_(default_resource(device()), std::size_t{4} * kCount, Stream::create(device())) {
    fill(device(), memory_.address(), 0, 4, kCount);
  }

  TimedWork work() const {
    return timed_launch(kernel_.on(device()), {.grid = {4096}, .block = {256}},
                        Pointer{memory_.address()}, kCount);
  }

 private:
  static constexpr unsigned kCount = 4 << 20;
  LazyKernel kernel_;
  Buffer memory_;
};

}  // namespace kernwright::test
