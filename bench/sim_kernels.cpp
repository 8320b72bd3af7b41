// Kernels on the simulated device beside a plain C++ loop, alternating in one run: sim_kernels [-o
// results.json] [-t host threads]. Each figure stands beside a check of the result.
#include "base/format.h"
#include "jit/program.h"
#include "sim/device.h"
#include "sim/exec/dispatch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace kw = kernwright;

namespace {

using Clock = std::chrono::steady_clock;
using Floats = std::vector<float>;

constexpr int kRounds = 15;

constexpr char kSource[] = R"cuda(
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += ta[threadIdx.y][k] * tb[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
extern "C" __global__ void reduce(const float* x, float* out, int n) {
  __shared__ float partial[32];
  float sum = 0;
  int first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = first; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0.0f;
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}
extern "C" __global__ void softmax(const float* x, float* y, int n) {
  extern __shared__ float red[];
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float m = -3.4e38f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) m = fmaxf(m, x[i]);
  red[threadIdx.x] = m;
  __syncthreads();
  for (int s = blockDim.x / 2; s; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - m);
  red[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - m) / red[0];
}
)cuda";

void check(kw::CUresult result, const char* call) {
  if (result == kw::CUDA_SUCCESS) return;
  throw std::runtime_error(kw::format("{} failed: {}", call, kw::result_name(result)));
}

/// The loaded kernels and arrays of one run; everything lives until the process ends.
class Bench {
 public:
  Bench() {
    check(api.cuInit(0), "cuInit");
    kw::CUcontext context = nullptr;
    check(api.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    kw::Source source;
    source.text = kSource;
    source.name = "sim_kernels.cu";
    kw::ProgramOptions options;
    options.arch = "compute_80";
    const kw::Program program(source, options);
    const kw::ObjectCode code = program.compile(kw::CodeKind::ptx);
    nvrtc = code.nvrtc_version;
    check(api.cuModuleLoadData(&module_, code.code.c_str()), "cuModuleLoadData");
  }

  kw::CUdeviceptr array(const Floats& values) const {
    kw::CUdeviceptr address = 0;
    check(api.cuMemAlloc(&address, values.size() * sizeof(float)), "cuMemAlloc");
    check(api.cuMemcpyHtoD(address, values.data(), values.size() * sizeof(float)), "copy");
    return address;
  }
  Floats read(kw::CUdeviceptr address, std::size_t count) const {
    Floats values(count);
    check(api.cuMemcpyDtoH(values.data(), address, count * sizeof(float)), "copy");
    return values;
  }
  template <typename... Arguments>
  void launch(const char* name, kw::CUlaunchConfig config, Arguments... arguments) const {
    kw::CUfunction function = nullptr;
    check(api.cuModuleGetFunction(&function, module_, name), "cuModuleGetFunction");
    void* parameters[] = {&arguments...};
    check(api.cuLaunchKernelEx(&config, function, parameters, nullptr), name);
  }

  const kw::DriverApi& api = kw::sim::driver_api();
  std::string nvrtc;

 private:
  kw::CUmodule module_ = nullptr;
};

kw::CUlaunchConfig shape(unsigned grid_x, unsigned grid_y, unsigned block_x, unsigned block_y,
                         unsigned shared = 0) {
  return {grid_x, grid_y, 1, block_x, block_y, 1, shared, nullptr, nullptr, 0};
}

Floats pattern(std::size_t count, unsigned seed) {
  Floats values(count);
  std::uint32_t state = seed;
  for (float& v : values) {
    state = state * 1664525 + 1013904223;
    v = static_cast<float>(state >> 8) / (1 << 23) - 1.0f;
  }
  return values;
}

double milliseconds(const std::function<void()>& work) {
  const auto begin = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

nlohmann::json summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {{"min", samples.front()}, {"median", samples[samples.size() / 2]}};
}

double largest_difference(const Floats& a, const Floats& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

/// Alternates both, then compares what the last round of each left behind.
nlohmann::json measure(const std::function<void()>& simulated, const std::function<void()>& plain,
                       const std::function<double()>& difference) {
  std::vector<double> sim, loop;
  simulated();
  plain();
  for (int round = 0; round < kRounds; ++round) {
    sim.push_back(milliseconds(simulated));
    loop.push_back(milliseconds(plain));
  }
  return {{"simulated_ms", summary(sim)},
          {"plain_loop_ms", summary(loop)},
          {"largest_difference", difference()}};
}

nlohmann::json bench_saxpy(const Bench& bench) {
  constexpr int kCount = 1 << 20;
  const Floats x = pattern(kCount, 1);
  Floats y(kCount, 0.0f);
  const kw::CUdeviceptr dx = bench.array(x), dy = bench.array(y);
  return measure([&] { bench.launch("saxpy", shape(4096, 1, 256, 1), 2.0f, dx, dy, int{kCount}); },
                 [&] {
                   for (std::size_t i = 0; i < x.size(); ++i) y[i] += 2.0f * x[i];
                 },
                 [&] { return largest_difference(bench.read(dy, kCount), y); });
}

nlohmann::json bench_sgemm(const Bench& bench) {
  constexpr std::size_t kSize = 256;
  const Floats a = pattern(kSize * kSize, 2), b = pattern(kSize * kSize, 3);
  Floats c(kSize * kSize);
  const kw::CUdeviceptr da = bench.array(a), db = bench.array(b), dc = bench.array(c);
  return measure([&] { bench.launch("sgemm", shape(16, 16, 16, 16), da, db, dc, int{kSize}); },
                 [&] {
                   for (std::size_t i = 0; i < kSize; ++i) {
                     for (std::size_t j = 0; j < kSize; ++j) {
                       float sum = 0;
                       for (std::size_t k = 0; k < kSize; ++k) {
                         sum += a[i * kSize + k] * b[k * kSize + j];
                       }
                       c[i * kSize + j] = sum;
                     }
                   }
                 },
                 [&] { return largest_difference(bench.read(dc, c.size()), c); });
}

nlohmann::json bench_reduce(const Bench& bench) {
  constexpr int kCount = 1 << 20;
  constexpr unsigned kBlocks = 256;
  const Floats x = pattern(kCount, 4);
  const kw::CUdeviceptr dx = bench.array(x), dy = bench.array(Floats(kBlocks));
  double sum = 0;
  return measure([&] { bench.launch("reduce", shape(kBlocks, 1, 256, 1), dx, dy, int{kCount}); },
                 [&] { sum = std::accumulate(x.begin(), x.end(), 0.0); },
                 [&] {
                   const Floats parts = bench.read(dy, kBlocks);
                   return std::fabs(std::accumulate(parts.begin(), parts.end(), 0.0) - sum);
                 });
}

nlohmann::json bench_softmax(const Bench& bench) {
  constexpr std::size_t kRows = 64, kColumns = 1024;
  const Floats x = pattern(kRows * kColumns, 5);
  Floats y(x.size());
  const kw::CUdeviceptr dx = bench.array(x), dy = bench.array(y);
  return measure(
      [&] { bench.launch("softmax", shape(kRows, 1, 128, 1, 512), dx, dy, int{kColumns}); },
      [&] {
        for (std::size_t row = 0; row < kRows; ++row) {
          const float* in = x.data() + row * kColumns;
          const float largest = *std::max_element(in, in + kColumns);
          float sum = 0;
          for (std::size_t i = 0; i < kColumns; ++i) sum += std::exp(in[i] - largest);
          for (std::size_t i = 0; i < kColumns; ++i) {
            y[row * kColumns + i] = std::exp(in[i] - largest) / sum;
          }
        }
      },
      [&] { return largest_difference(bench.read(dy, y.size()), y); });
}

std::string option(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string(argv[i]) == name) return argv[i + 1];
  }
  return fallback;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string threads = option(argc, argv, "-t", "1");
  setenv("KERNWRIGHT_SIM_THREADS", threads.c_str(), 1);
  const Bench bench;
  const nlohmann::json document = {{"subject", "sim_kernels"},
                                   {"host_threads", std::stoi(threads)},
                                   {"instruction_set", kw::sim::selected_isa()},
                                   {"nvrtc", bench.nvrtc},
                                   {"rounds", kRounds},
                                   {"saxpy_1m", bench_saxpy(bench)},
                                   {"sgemm_tiled_256", bench_sgemm(bench)},
                                   {"reduce_1m", bench_reduce(bench)},
                                   {"softmax_64x1024", bench_softmax(bench)}};
  const std::string text = document.dump(1);
  std::printf("%s\n", text.c_str());
  const std::string path = option(argc, argv, "-o", "");
  if (!path.empty()) std::ofstream(path) << text << '\n';
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "sim_kernels: %s\n", error.what());
  return 1;
}
