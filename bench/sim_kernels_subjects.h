// The subjects of sim_kernels.cpp: each kernel on the device and as a plain loop, and the
// difference of their results.
#pragma once

#include "sim_kernels_source.h"

#include "base/format.h"
#include "jit/program.h"
#include "sim/device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace kw = kernwright;

using Floats = std::vector<float>;

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
    text_ = code.code;
    load();
  }

  /// Loads the module again, for the instruction set in the environment.
  void load() const {
    if (module_ != nullptr) check(api.cuModuleUnload(module_), "cuModuleUnload");
    check(api.cuModuleLoadData(&module_, text_.c_str()), "cuModuleLoadData");
  }
  std::ptrdiff_t lines() const { return std::count(text_.begin(), text_.end(), '\n'); }

  kw::CUdeviceptr array(const Floats& values) const {
    kw::CUdeviceptr address = 0;
    check(api.cuMemAlloc(&address, values.size() * sizeof(float)), "cuMemAlloc");
    write(address, values);
    return address;
  }
  void write(kw::CUdeviceptr address, const Floats& values) const {
    check(api.cuMemcpyHtoD(address, values.data(), values.size() * sizeof(float)), "copy");
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
  std::string text_;
  mutable kw::CUmodule module_ = nullptr;
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

double largest_difference(const Floats& a, const Floats& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]} - double{b[i]}));
  }
  return largest;
}

/// One kernel: its run on the device, its plain loop, and the difference of their results.
struct Subject {
  std::string name;
  std::function<void(const Bench&)> simulated;
  std::function<void()> plain;
  std::function<double(const Bench&)> difference;
  double flops = 0;
  /// For a run that continues from the last result: resets both sides to the same values.
  std::function<void(const Bench&)> restart = [](const Bench&) {};

  /// The difference after one run of each. Throws if it is larger than rounding.
  double compare(const Bench& bench) const {
    constexpr double kRounding = 1e-4;
    restart(bench);
    simulated(bench);
    plain();
    const double found = difference(bench);
    if (found <= kRounding) return found;
    throw std::runtime_error(kw::format("{} differs from the loop by {}", name, found));
  }
};

Subject saxpy(const Bench& bench) {
  constexpr int kCount = 1 << 20;
  struct State {
    Floats x = pattern(kCount, 1), y = Floats(kCount, 0.0f);
  };
  const auto s = std::make_shared<State>();
  const kw::CUdeviceptr dx = bench.array(s->x), dy = bench.array(s->y);
  return {
      "saxpy_1m",
      [=](const Bench& b) { b.launch("saxpy", shape(4096, 1, 256, 1), 2.0f, dx, dy, int{kCount}); },
      [s] {
        for (std::size_t i = 0; i < s->x.size(); ++i) s->y[i] += 2.0f * s->x[i];
      },
      [=](const Bench& b) { return largest_difference(b.read(dy, kCount), s->y); },
      0,
      [=](const Bench& b) {
        std::fill(s->y.begin(), s->y.end(), 1.0f);
        b.write(dy, s->y);
      }};
}

Subject sgemm(const Bench& bench, const char* name, const char* kernel, kw::CUlaunchConfig config) {
  constexpr std::size_t kSize = 256;
  struct State {
    Floats a = pattern(kSize * kSize, 2), b = pattern(kSize * kSize, 3), c = Floats(kSize * kSize);
  };
  const auto s = std::make_shared<State>();
  const kw::CUdeviceptr da = bench.array(s->a), db = bench.array(s->b), dc = bench.array(s->c);
  return {name,
          [=](const Bench& b) { b.launch(kernel, config, da, db, dc, static_cast<int>(kSize)); },
          [s] {
            for (std::size_t i = 0; i < kSize; ++i) {
              for (std::size_t j = 0; j < kSize; ++j) {
                float sum = 0;
                for (std::size_t k = 0; k < kSize; ++k) {
                  sum += s->a[i * kSize + k] * s->b[k * kSize + j];
                }
                s->c[i * kSize + j] = sum;
              }
            }
          },
          [=](const Bench& b) { return largest_difference(b.read(dc, s->c.size()), s->c); },
          2.0 * kSize * kSize * kSize};
}

Subject reduce(const Bench& bench) {
  constexpr int kCount = 1 << 20;
  constexpr unsigned kBlocks = 256;
  struct State {
    Floats x = pattern(kCount, 4);
    double sum = 0;
  };
  const auto s = std::make_shared<State>();
  const kw::CUdeviceptr dx = bench.array(s->x), dy = bench.array(Floats(kBlocks));
  return {
      "reduce_1m",
      [=](const Bench& b) { b.launch("reduce", shape(kBlocks, 1, 256, 1), dx, dy, int{kCount}); },
      [s] { s->sum = std::accumulate(s->x.begin(), s->x.end(), 0.0); },
      [=](const Bench& b) {
        const Floats parts = b.read(dy, kBlocks);
        return std::fabs(std::accumulate(parts.begin(), parts.end(), 0.0) - s->sum);
      }};
}

Subject softmax(const Bench& bench) {
  constexpr std::size_t kRows = 64, kColumns = 1024;
  struct State {
    Floats x = pattern(kRows * kColumns, 5), y = Floats(kRows * kColumns);
  };
  const auto s = std::make_shared<State>();
  const kw::CUdeviceptr dx = bench.array(s->x), dy = bench.array(s->y);
  return {"softmax_64x1024",
          [=](const Bench& b) {
            b.launch("softmax", shape(kRows, 1, 128, 1, 512), dx, dy, static_cast<int>(kColumns));
          },
          [s] {
            for (std::size_t row = 0; row < kRows; ++row) {
              const float* in = s->x.data() + row * kColumns;
              float* out = s->y.data() + row * kColumns;
              const float largest = *std::max_element(in, in + kColumns);
              float sum = 0;
              for (std::size_t i = 0; i < kColumns; ++i) sum += std::exp(in[i] - largest);
              for (std::size_t i = 0; i < kColumns; ++i) out[i] = std::exp(in[i] - largest) / sum;
            }
          },
          [=](const Bench& b) { return largest_difference(b.read(dy, s->y.size()), s->y); }};
}

Subject transpose(const Bench& bench, const char* name, const char* kernel) {
  constexpr std::size_t kSize = 1024;
  struct State {
    Floats x = pattern(kSize * kSize, 6), y = Floats(kSize * kSize);
  };
  const auto s = std::make_shared<State>();
  const kw::CUdeviceptr dx = bench.array(s->x), dy = bench.array(s->y);
  return {name,
          [=](const Bench& b) {
            b.launch(kernel, shape(32, 32, 32, 8), dx, dy, static_cast<int>(kSize));
          },
          [s] {
            for (std::size_t i = 0; i < kSize; ++i) {
              for (std::size_t j = 0; j < kSize; ++j) s->y[j * kSize + i] = s->x[i * kSize + j];
            }
          },
          [=](const Bench& b) { return largest_difference(b.read(dy, s->y.size()), s->y); }};
}

/// Halves in the layout of m16n8k16: register r of A in lane 4 * g + t holds the elements
/// 2 * t + {0, 1} + 8 * (r / 2) of row g + 8 * (r % 2); the columns of B likewise. All are
/// multiples of a quarter, so every sum is exact.
constexpr int kMmaRounds = 256, kMmaWarps = 64;
float mma_left(int row, int k) { return static_cast<float>((row * 7 + k * 3) % 9 - 4) / 4; }
float mma_right(int k, int column) { return static_cast<float>((k * 5 + column) % 7 - 3) / 4; }

/// Two quarters in [-1, 1] as halves: 0 or sign, exponent and mantissa written out.
std::uint16_t half_of(float quarter) {
  if (quarter == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(quarter);
  const std::uint32_t exponent = (bits >> 23 & 255) - 127 + 15;
  return static_cast<std::uint16_t>(bits >> 31 << 15 | exponent << 10 | (bits >> 13 & 1023));
}

float half_pair(float low, float high) {
  return std::bit_cast<float>(half_of(low) | std::uint32_t{half_of(high)} << 16);
}

Subject mma(const Bench& bench) {
  Floats a(128), b(64);
  for (int i = 0; i < 128; ++i) {
    const int lane = i % 32, row = lane / 4 + 8 * (i / 32 % 2), k = lane % 4 * 2 + 8 * (i / 64);
    a[static_cast<std::size_t>(i)] = half_pair(mma_left(row, k), mma_left(row, k + 1));
    if (i >= 64) continue;
    const int column = lane / 4, first = lane % 4 * 2 + 8 * (i / 32);
    b[static_cast<std::size_t>(i)] =
        half_pair(mma_right(first, column), mma_right(first + 1, column));
  }
  const auto c = std::make_shared<Floats>(128 * kMmaWarps);
  const kw::CUdeviceptr da = bench.array(a), db = bench.array(b), dc = bench.array(*c);
  return {"mma_m16n8k16_f16_f32",
          [=](const Bench& bench_) {
            bench_.launch("mma", shape(kMmaWarps / 4, 1, 128, 1), da, db, dc, int{kMmaRounds});
          },
          [c] {
            float left[16][16], right[16][8];
            for (int i = 0; i < 256; ++i) left[i / 16][i % 16] = mma_left(i / 16, i % 16);
            for (int i = 0; i < 128; ++i) right[i / 8][i % 8] = mma_right(i / 8, i % 8);
            for (int warp = 0; warp < kMmaWarps; ++warp) {
              float sum[16][8] = {};
              for (int round = 0; round < kMmaRounds; ++round) {
                for (int i = 0; i < 16; ++i) {
                  for (int j = 0; j < 8; ++j) {
                    for (int k = 0; k < 16; ++k) sum[i][j] += left[i][k] * right[k][j];
                  }
                }
              }
              for (int i = 0; i < 128; ++i) {
                const int lane = i % 32, r = i / 32;
                (*c)[static_cast<std::size_t>(warp * 128 + i)] =
                    sum[lane / 4 + 8 * (r / 2)][lane % 4 * 2 + r % 2];
              }
            }
          },
          [=](const Bench& bench_) { return largest_difference(bench_.read(dc, c->size()), *c); },
          16.0 * 8 * 16 * 2 * kMmaRounds * kMmaWarps};
}

std::vector<Subject> all_subjects(const Bench& bench) {
  return {
      saxpy(bench),
      sgemm(bench, "sgemm_tiled_256", "sgemm", shape(16, 16, 16, 16)),
      sgemm(bench, "sgemm_register_blocked_256", "sgemm_blocked", shape(4, 4, 256, 1)),
      reduce(bench),
      softmax(bench),
      mma(bench),
      transpose(bench, "transpose_1024", "transpose"),
      transpose(bench, "transpose_tiled_1024", "transpose_tiled"),
  };
}

}  // namespace
