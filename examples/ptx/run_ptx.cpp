// Runs a kernel of a .ptx file on the simulated device. It links only kernwright::sim: no compiler,
// no CUDA.
//
//   run_ptx FILE KERNEL GRID BLOCK ARGUMENT...
//   run_ptx saxpy.ptx saxpy 8 128 f:2.5 x:1000 x:1000 i:1000
//
// An argument is i:INTEGER (32 bits), f:NUMBER (float) or x:COUNT, an array of floats 0, 1, 2, ...
// The first elements of arrays are printed after the run. Exit code 1 and a finding mean a faulty
// kernel, 2 means wrong use.
#include "sim/device.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace kw = kernwright;

namespace {

const kw::DriverApi& api = kw::sim::driver_api();

/// Throws the device's message for a failed call.
void check(kw::CUresult result, const std::string& what) {
  if (result == kw::CUDA_SUCCESS) return;
  const char* text = nullptr;
  api.cuGetErrorString(result, &text);
  kw::Fault report;
  const bool known = api.kwTakeReport(nullptr, &report) == kw::CUDA_SUCCESS;
  throw std::runtime_error(what + ": " + text + (known ? "\n" + report.to_string() : ""));
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::invalid_argument("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
T number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw std::invalid_argument("not a number, or too large: '" + text + "'");
}

struct Argument {
  kw::CUdeviceptr bits = 0;   ///< the kernel's argument
  std::vector<float> values;  ///< of an array
};

Argument read_argument(const std::string& text) {
  Argument argument;
  const std::string value = text.size() > 2 ? text.substr(2) : "";
  if (text.starts_with("i:")) {
    const int integer = number<int>(value);
    std::memcpy(&argument.bits, &integer, sizeof integer);
  } else if (text.starts_with("f:")) {
    const float real = number<float>(value);
    std::memcpy(&argument.bits, &real, sizeof real);
  } else if (text.starts_with("x:")) {
    argument.values.resize(number<std::uint32_t>(value));
    std::iota(argument.values.begin(), argument.values.end(), 0.0f);
    const std::size_t bytes = argument.values.size() * sizeof(float);
    check(api.cuMemAlloc(&argument.bits, bytes), "cuMemAlloc of " + text);
    check(api.cuMemcpyHtoD(argument.bits, argument.values.data(), bytes), "cuMemcpyHtoD");
  } else {
    throw std::invalid_argument("an argument is i:INTEGER, f:NUMBER or x:COUNT, not " + text);
  }
  return argument;
}

void run(const std::vector<std::string>& words) {
  if (words.size() < 4) throw std::invalid_argument("run_ptx FILE KERNEL GRID BLOCK ARGUMENT...");
  check(api.cuInit(0), "cuInit");
  kw::CUcontext context = nullptr;
  check(api.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(api.cuCtxPushCurrent(context), "cuCtxPushCurrent");

  kw::CUmodule module = nullptr;
  kw::CUfunction kernel = nullptr;
  check(api.cuModuleLoadData(&module, read(words[0]).c_str()), words[0]);
  check(api.cuModuleGetFunction(&kernel, module, words[1].c_str()), words[1]);

  std::vector<Argument> arguments;
  for (std::size_t i = 4; i < words.size(); ++i) arguments.push_back(read_argument(words[i]));
  std::vector<void*> pointers;
  for (Argument& argument : arguments) pointers.push_back(&argument.bits);
  const auto grid = number<unsigned>(words[2]);
  const auto block = number<unsigned>(words[3]);
  check(api.cuLaunchKernel(kernel, grid, 1, 1, block, 1, 1, 0, nullptr, pointers.data(), nullptr),
        words[1]);

  for (Argument& argument : arguments) {
    if (argument.values.empty()) continue;
    const std::size_t bytes = argument.values.size() * sizeof(float);
    check(api.cuMemcpyDtoH(argument.values.data(), argument.bits, bytes), "cuMemcpyDtoH");
    for (std::size_t i = 0; i < argument.values.size() && i < 8; ++i) {
      std::printf("%s%g", i == 0 ? "" : " ", static_cast<double>(argument.values[i]));
    }
    std::printf("%s\n", argument.values.size() > 8 ? " ..." : "");
    check(api.cuMemFree(argument.bits), "cuMemFree");
  }
  check(api.cuModuleUnload(module), "cuModuleUnload");
  check(api.cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
}

}  // namespace

int main(int argc, char** argv) try {
  run({argv + 1, argv + argc});
  return 0;
} catch (const std::invalid_argument& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
