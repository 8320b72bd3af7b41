// Resource counts read from cubins: against the assembler's own words, and from damaged images.
#include "sim/device/resources.h"
#include "driver/nvrtc_loader.h"
#include "unit/sim/device/device_fixture.h"
#include "unit/site_packages.h"

#include <random>
#include <sstream>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr char kSource[] = R"(
__constant__ float table[100];
extern "C" __global__ void __launch_bounds__(256) with_shared(float* x, int n) {
  __shared__ float s[300];
  s[threadIdx.x] = table[n % 100];
  __syncthreads();
  x[threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void with_local(float* x, int n) {
  float local[64];
  for (int i = 0; i < 64; i++) local[i] = x[i];
  float sum = 0;
  for (int i = 0; i < n; i++) sum += local[(i * 7) % 64];
  x[0] = sum;
}
template <typename T> __global__ void divide(T* x, T y) { x[threadIdx.x] /= y; }
template __global__ void divide<double>(double*, double);
)";

struct Compiled {
  std::string cubin, ptx, log;
};

std::string fetch(nvrtcResult (*size_of)(nvrtcProgram, std::size_t*),
                  nvrtcResult (*get)(nvrtcProgram, char*), nvrtcProgram program) {
  std::size_t size = 0;
  REQUIRE(size_of(program, &size) == NVRTC_SUCCESS);
  std::string text(size, '\0');
  REQUIRE(get(program, text.data()) == NVRTC_SUCCESS);
  return text;
}

Compiled compile_with_nvrtc() {
  set_site_packages({testing::site_packages()});
  const NvrtcApi& api = nvrtc().api;
  nvrtcProgram program = nullptr;
  REQUIRE(api.nvrtcCreateProgram(&program, kSource, "r.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  // The compiler's own cache would leave the assembler's figures out of the log.
  const char* options[] = {"--gpu-architecture=sm_80", "--ptxas-options=-v", "--no-cache"};
  REQUIRE(api.nvrtcCompileProgram(program, 3, options) == NVRTC_SUCCESS);
  Compiled result;
  result.cubin = fetch(api.nvrtcGetCUBINSize, api.nvrtcGetCUBIN, program);
  result.ptx = fetch(api.nvrtcGetPTXSize, api.nvrtcGetPTX, program);
  result.log = fetch(api.nvrtcGetProgramLogSize, api.nvrtcGetProgramLog, program);
  api.nvrtcDestroyProgram(&program);
  return result;
}

const Compiled& compiled() {
  static const Compiled result = compile_with_nvrtc();
  return result;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// The number before `unit` in the log's lines about `kernel`, 0 when there is none.
unsigned from_log(const std::string& log, const std::string& kernel, const std::string& unit) {
  std::istringstream lines(log);
  std::string line;
  bool inside = false;
  unsigned found = 0;
  while (std::getline(lines, line)) {
    if (line.find("Compiling entry function") != std::string::npos) {
      inside = line.find("'" + kernel + "'") != std::string::npos;
    }
    const std::size_t at = line.find(" " + unit);
    if (!inside || at == std::string::npos || at == 0) continue;
    const std::size_t begin = line.find_last_not_of("0123456789", at - 1) + 1;
    if (begin < at) found = static_cast<unsigned>(std::stoul(line.substr(begin, at - begin)));
  }
  return found;
}

}  // namespace

TEST_CASE("cubin resources: the same numbers as the assembler prints") {
  const auto kernels = read_cubin_resources(bytes_of(compiled().cubin));
  REQUIRE(kernels.size() == 3);
  for (const char* name : {"with_shared", "with_local", "_Z6divideIdEvPT_S0_"}) {
    INFO(name, "\n", compiled().log);
    REQUIRE(kernels.contains(name));
    const KernelResources& resources = kernels.at(name);
    CHECK(static_cast<unsigned>(resources.registers) ==
          from_log(compiled().log, name, "registers"));
    CHECK(resources.shared_bytes == from_log(compiled().log, name, "bytes smem"));
    CHECK(resources.local_bytes == from_log(compiled().log, name, "bytes stack frame"));
    CHECK(resources.constant_bytes == 400);
  }
  CHECK(kernels.at("with_shared").shared_bytes == 1200);
  CHECK(kernels.at("with_shared").max_threads == 256);
  CHECK(kernels.at("with_local").local_bytes >= 256);
  CHECK(kernels.at("with_local").max_threads == 0);
}

TEST_CASE("cubin resources: functions of the simulated device carry them") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUmodule module = nullptr;
  REQUIRE(api.cuModuleLoadData(&module, compiled().ptx.c_str()) == CUDA_SUCCESS);
  const auto attribute = [&](const char* name, CUfunction_attribute which) {
    CUfunction function = nullptr;
    int value = -1;
    REQUIRE(api.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS);
    REQUIRE(api.cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS);
    return value;
  };
  const auto most_threads = [&](const char* name) {
    return attribute(name, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  };
  for (const char* name : {"with_shared", "with_local"}) {  // estimates
    const int registers = attribute(name, CU_FUNC_ATTRIBUTE_NUM_REGS);
    CHECK(registers >= 16);
    CHECK(registers <= 64);
  }
  CHECK(most_threads("with_local") == 1024);

  // Until the cubin is there, a block fits for certain, or the kernel's bounds tell.
  REQUIRE(api.kwSetModuleResources(module, nullptr, 0) == CUDA_SUCCESS);
  CHECK(attribute("with_local", CU_FUNC_ATTRIBUTE_NUM_REGS) == 255);
  CHECK(most_threads("with_local") == 256);
  CHECK(most_threads("with_shared") == 256);
  CHECK(api.kwSetModuleResources(module, nullptr, 1) == CUDA_ERROR_INVALID_VALUE);

  REQUIRE(api.kwSetModuleResources(module, compiled().cubin.data(), compiled().cubin.size()) ==
          CUDA_SUCCESS);
  for (const char* name : {"with_shared", "with_local"}) {
    CHECK(static_cast<unsigned>(attribute(name, CU_FUNC_ATTRIBUTE_NUM_REGS)) ==
          from_log(compiled().log, name, "registers"));
    CHECK(static_cast<unsigned>(attribute(name, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)) ==
          from_log(compiled().log, name, "bytes stack frame"));
  }
  CHECK(most_threads("with_local") == 1024);
  REQUIRE(api.cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK(api.kwSetModuleResources(module, nullptr, 0) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("cubin resources: a guess refuses no block, however many values a kernel has") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  std::string loads, sums;
  for (int i = 0; i < 300; ++i) {
    const std::string v = "%v" + std::to_string(i);
    loads += "ld.volatile.global.u32 " + v + ", [%a];\n";
    sums += "add.u32 %s, %s, " + v + ";\n";
  }
  const std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
      ".reg .b32 %v<300>, %s;\n.reg .b64 %a;\nld.param.u64 %a, [p];\n" +
      loads + "mov.u32 %s, 0;\n" + sums + "st.global.u32 [%a+4], %s;\nret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  REQUIRE(api.cuModuleLoadData(&module, text.c_str()) == CUDA_SUCCESS);
  REQUIRE(api.cuModuleGetFunction(&function, module, "k") == CUDA_SUCCESS);
  REQUIRE(api.cuMemAlloc(&memory, 8) == CUDA_SUCCESS);
  const std::uint32_t values[2] = {7, 0};
  REQUIRE(api.cuMemcpyHtoD(memory, values, 8) == CUDA_SUCCESS);
  void* parameters[] = {&memory};
  CHECK(api.cuLaunchKernel(function, 1, 1, 1, 1024, 1, 1, 0, nullptr, parameters, nullptr) ==
        CUDA_SUCCESS);
  std::uint32_t sum = 0;
  REQUIRE(api.cuMemcpyDtoH(&sum, memory + 4, 4) == CUDA_SUCCESS);
  CHECK(sum == 2100);
  int most = 0;
  REQUIRE(api.cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function) ==
          CUDA_SUCCESS);
  CHECK(most == 1024);
  CHECK(api.cuMemFree(memory) == CUDA_SUCCESS);
  CHECK(api.cuModuleUnload(module) == CUDA_SUCCESS);
}

TEST_CASE("cubin resources: damaged images give nothing or something, never harm") {
  const std::string& good = compiled().cubin;
  CHECK(read_cubin_resources({}).empty());
  CHECK(read_cubin_resources(bytes_of("\x7f"
                                      "ELF"))
            .empty());
  for (std::size_t length = 0; length < good.size(); length += 7) {
    read_cubin_resources(bytes_of(good.substr(0, length)));
  }
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int k = 0; k < 3; ++k) {
      // Headers and tables are where damage leads astray.
      const bool tail = random() % 2 == 0;
      const std::size_t at = tail ? bad.size() - 1 - random() % 2000 : random() % 600;
      bad[at % bad.size()] = static_cast<char>(random());
    }
    read_cubin_resources(bytes_of(bad));
  }
  std::string other = good;
  other[18] = 62;  // an x86-64 image
  CHECK(read_cubin_resources(bytes_of(other)).empty());
}
