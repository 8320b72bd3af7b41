// Modules, functions, launches and occupancy of the simulated driver.
#include "base/format.h"
#include "sim/device/profile.h"
#include "unit/sim/device/device_fixture.h"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Adds `step` to x[i] for every thread; `table` and `limit` are module variables.
constexpr char kAdd[] = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 limit = 1000;
.const .align 4 .b8 table[12] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0};
.global .align 8 .u64 place = generic(limit);
.visible .entry add(.param .u64 x, .param .u32 step, .param .u8 unused)
.maxntid 256, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  .shared .align 4 .b8 space[2048];
  ld.param.u64 %rd1, [x];
  ld.param.u32 %r1, [step];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.wide.s32 %rd2, %r5, 4;
  cvta.to.global.u64 %rd3, %rd1;
  add.s64 %rd4, %rd3, %rd2;
  ld.global.u32 %r6, [%rd4];
  add.s32 %r7, %r6, %r1;
  st.global.u32 [%rd4], %r7;
  ret;
}
.visible .entry nothing()
{
  ret;
}
)";

struct Module {
  Module(const CurrentDevice& device, const char* text) : api(device.api) {
    REQUIRE(api.cuModuleLoadData(&handle, text) == CUDA_SUCCESS);
  }
  ~Module() { api.cuModuleUnload(handle); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  CUfunction function(const char* name) const {
    CUfunction result = nullptr;
    REQUIRE(api.cuModuleGetFunction(&result, handle, name) == CUDA_SUCCESS);
    return result;
  }
  const DriverApi& api;
  CUmodule handle = nullptr;
};

int attribute(const DriverApi& api, CUfunction function, CUfunction_attribute which) {
  int value = -1;
  REQUIRE(api.cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS);
  return value;
}

CUresult launch_add(const DriverApi& api, CUfunction function, unsigned grid, unsigned block,
                    CUdeviceptr x, unsigned step, CUstream stream = nullptr) {
  unsigned char unused = 0;
  void* parameters[] = {&x, &step, &unused};
  return api.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace

TEST_CASE("sim module: functions, variables, names") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const Module module(device, kAdd);
  const CUfunction add = module.function("add");
  CHECK(module.function("add") == add);
  CUfunction none = nullptr;
  CHECK(api.cuModuleGetFunction(&none, module.handle, "sub") == CUDA_ERROR_NOT_FOUND);
  CHECK(api.cuModuleGetFunction(&none, nullptr, "add") == CUDA_ERROR_INVALID_HANDLE);
  unsigned count = 0;
  CHECK(api.cuModuleGetFunctionCount(&count, module.handle) == CUDA_SUCCESS);
  CHECK(count == 2);
  const char* name = nullptr;
  CHECK(api.cuFuncGetName(&name, add) == CUDA_SUCCESS);
  CHECK(std::string(name) == "add");
  CUmodule owner = nullptr;
  CHECK(api.cuFuncGetModule(&owner, add) == CUDA_SUCCESS);
  CHECK(owner == module.handle);
  CUdeviceptr limit = 0, address = 0;
  std::size_t bytes = 0;
  CHECK(api.cuModuleGetGlobal(&limit, &bytes, module.handle, "limit") == CUDA_SUCCESS);
  CHECK(bytes == 4);
  CHECK(device.download<int>(limit, 1)[0] == 1000);
  CHECK(api.cuModuleGetGlobal(&address, &bytes, module.handle, "table") == CUDA_SUCCESS);
  CHECK(bytes == 12);
  CHECK(device.download<int>(address, 3) == std::vector<int>{1, 2, 3});
  CHECK(api.cuModuleGetGlobal(&address, nullptr, module.handle, "place") == CUDA_SUCCESS);
  CHECK(device.download<CUdeviceptr>(address, 1)[0] == limit);
  CHECK(api.cuModuleGetGlobal(&address, &bytes, module.handle, "space") == CUDA_ERROR_NOT_FOUND);
  const int other[3] = {7, 8, 9};
  CHECK(api.cuModuleGetGlobal(&address, &bytes, module.handle, "table") == CUDA_SUCCESS);
  CHECK(api.cuMemcpyHtoD(address, other, 12) == CUDA_SUCCESS);  // the host may write constants
}

TEST_CASE("sim module: initial values narrower than their elements leave the rest zero") {
  const CurrentDevice device;
  const std::string text = std::string(kHeader) +
                           ".global .align 16 .b128 wide[3] = {5, 0xffffffffffffffff};\n"
                           ".global .align 2 .b16 narrow[4] = {1, 0xffff};\n";
  const Module module(device, text.c_str());
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  REQUIRE(device.api.cuModuleGetGlobal(&address, &bytes, module.handle, "wide") == CUDA_SUCCESS);
  CHECK(bytes == 48);
  CHECK(device.download<std::uint64_t>(address, 6) ==
        std::vector<std::uint64_t>{5, 0, ~std::uint64_t{0}, 0, 0, 0});
  REQUIRE(device.api.cuModuleGetGlobal(&address, &bytes, module.handle, "narrow") == CUDA_SUCCESS);
  CHECK(bytes == 8);
  CHECK(device.download<std::uint16_t>(address, 4) == std::vector<std::uint16_t>{1, 0xffff, 0, 0});
}

TEST_CASE("sim module: two loads of one text have variables of their own; memory comes back") {
  CurrentDevice device;
  std::size_t before = 0, after = 0, total = 0;
  REQUIRE(device.api.cuMemGetInfo(&before, &total) == CUDA_SUCCESS);
  {
    const Module first(device, kAdd), second(device, kAdd);
    CUdeviceptr a = 0, b = 0;
    CHECK(device.api.cuModuleGetGlobal(&a, nullptr, first.handle, "limit") == CUDA_SUCCESS);
    CHECK(device.api.cuModuleGetGlobal(&b, nullptr, second.handle, "limit") == CUDA_SUCCESS);
    CHECK(a != b);
  }
  REQUIRE(device.api.cuMemGetInfo(&after, &total) == CUDA_SUCCESS);
  CHECK(after == before);
}

TEST_CASE("sim module: handles die with the module and the context") {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  {
    CurrentDevice device;
    REQUIRE(device.api.cuModuleLoadData(&module, kAdd) == CUDA_SUCCESS);
    REQUIRE(device.api.cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS);
    CHECK(device.api.cuModuleUnload(module) == CUDA_SUCCESS);
    CHECK(device.api.cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
    int value = 0;
    CHECK(device.api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) ==
          CUDA_ERROR_INVALID_HANDLE);
    CHECK(launch_add(device.api, function, 1, 1, 0, 0) == CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(device.api.cuModuleLoadData(&module, kAdd) == CUDA_SUCCESS);
    REQUIRE(device.api.cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS);
  }
  CurrentDevice device;
  CHECK(device.api.cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(launch_add(device.api, function, 1, 1, 0, 0) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("sim module: what cannot run is refused with a log and a report") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  std::array<char, 512> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  const auto load = [&](const std::string& image) {
    void* values[] = {log.data(), reinterpret_cast<void*>(std::uintptr_t{log.size()})};
    CUmodule module = nullptr;
    log.fill('?');
    const CUresult result = api.cuModuleLoadDataEx(&module, image.c_str(), 2, options, values);
    const auto used = reinterpret_cast<std::uintptr_t>(values[1]);
    CHECK(used == std::strlen(log.data()) + 1);
    if (result == CUDA_SUCCESS) api.cuModuleUnload(module);
    return result;
  };
  const auto says = [&](const char* text) {
    return std::string(log.data()).find(text) != std::string::npos;
  };
  CHECK(load(kAdd) == CUDA_SUCCESS);
  CHECK(log[0] == '\0');
  CHECK(load("\x7f"
             "ELF and so on") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(says("runs PTX text"));
  CHECK(load("\x01\x02") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(std::string(kHeader) + ".visible .entry k() { frobnicate.u32 %r1; }") ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(says("frobnicate"));
  Fault report = device.report();
  CHECK(report.kind == FaultKind::unsupported);
  CHECK(report.opcode.find("frobnicate") == 0);
  CHECK(report.ptx_line == 4);
  CHECK(load(std::string(kHeader) + "\n.visible .entry k( {") == CUDA_ERROR_INVALID_PTX);
  report = device.report();
  CHECK(report.kind == FaultKind::invalid_ptx);
  CHECK(report.ptx_line == 5);
  const bool is_90 = device_profile().is_90;
  CHECK(load(kernwright::format(".version 8.6\n.target sm_{}\n.address_size 64\n",
                                is_90 ? 100 : 90)) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(says(is_90 ? "compute_90" : "compute_80"));
  CHECK(load(std::string(kHeader) + ".extern .global .u32 elsewhere;") == CUDA_ERROR_INVALID_PTX);
  CHECK(says("elsewhere"));
  CUmodule module = nullptr;
  CHECK(api.cuModuleLoadData(&module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuModuleLoadDataEx(&module, kAdd, 1, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim function: attributes, parameters, dynamic shared memory") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const Module module(device, kAdd);
  const CUfunction add = module.function("add");
  const int capability = device_profile().is_90 ? 90 : 80;
  const int optin = device_profile().is_90 ? 232448 : 166912;
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 256);
  CHECK(attribute(api, module.function("nothing"), CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ==
        1024);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 2048);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES) == 12);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == capability);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_PTX_VERSION) == capability);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_NUM_REGS) >= 8);
  CHECK(attribute(api, add, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) == 49152 - 2048);
  const auto dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK(api.cuFuncSetAttribute(add, dynamic, optin - 2048) == CUDA_SUCCESS);
  CHECK(attribute(api, add, dynamic) == optin - 2048);
  CHECK(api.cuFuncSetAttribute(add, dynamic, optin - 2047) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuFuncSetAttribute(add, dynamic, -1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuFuncSetAttribute(add, CU_FUNC_ATTRIBUTE_NUM_REGS, 1) == CUDA_ERROR_INVALID_VALUE);
  std::size_t offset = 99, size = 99;
  CHECK(api.cuFuncGetParamInfo(add, 0, &offset, &size) == CUDA_SUCCESS);
  CHECK(offset == 0);
  CHECK(size == 8);
  CHECK(api.cuFuncGetParamInfo(add, 2, &offset, &size) == CUDA_SUCCESS);
  CHECK(offset == 12);
  CHECK(size == 1);
  CHECK(api.cuFuncGetParamInfo(add, 3, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim launch: every thread runs, arguments come both ways") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const Module module(device, kAdd);
  const CUfunction add = module.function("add");
  CUdeviceptr x = device.upload(std::vector<int>(10 * 32, 5));
  CHECK(launch_add(api, add, 10, 32, x, 7) == CUDA_SUCCESS);
  CHECK(device.download<int>(x, 320) == std::vector<int>(320, 12));
  std::array<unsigned char, 16> block{};
  const unsigned step = 100;
  std::memcpy(block.data(), &x, 8);
  std::memcpy(block.data() + 8, &step, 4);
  std::size_t size = block.size();
  void* extra[] = {kLaunchParamBufferPointer, block.data(), kLaunchParamBufferSize, &size,
                   kLaunchParamEnd};
  CUlaunchConfig config{10, 1, 1, 32, 1, 1, 0, nullptr, nullptr, 0};
  CHECK(api.cuLaunchKernelEx(&config, add, nullptr, extra) == CUDA_SUCCESS);
  CHECK(device.download<int>(x, 320) == std::vector<int>(320, 112));
  size = 4;
  CHECK(api.cuLaunchKernelEx(&config, add, nullptr, extra) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuLaunchKernelEx(&config, module.function("nothing"), nullptr, nullptr) ==
        CUDA_SUCCESS);
  CHECK(api.cuLaunchKernelEx(nullptr, add, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim launch: shapes and resources outside the limits are refused") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const Module module(device, kAdd);
  const CUfunction nothing = module.function("nothing");
  const auto launch = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared) {
    return api.cuLaunchKernel(nothing, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  CHECK(launch(1, 1, 1, 1024, 1, 1, 0) == CUDA_SUCCESS);
  CHECK(launch(1, 1, 1, 2, 2, 64, 49152) == CUDA_SUCCESS);
  CHECK(launch(0, 1, 1, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 0, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1025, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 32, 33, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1, 1, 65, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 65536, 1, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 65536, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1, 1, 1, 49153) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch_add(api, module.function("add"), 1, 257, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuLaunchKernel(module.function("add"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr,
                           nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0,
                           reinterpret_cast<CUstream>(std::uintptr_t{0x5000}), nullptr,
                           nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CUlaunchAttribute attributes[1]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[0].value.cooperative = 1;
  CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, nullptr, attributes, 1};
  CHECK(api.cuLaunchKernelEx(&config, nothing, nullptr, nullptr) == CUDA_SUCCESS);
  config.gridDimX = 1000000;
  CHECK(api.cuLaunchKernelEx(&config, nothing, nullptr, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  config.gridDimX = 1;
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim = {2, 1, 1};
  // A grid of one block is no whole number of clusters of two, where there are clusters.
  CHECK(api.cuLaunchKernelEx(&config, nothing, nullptr, nullptr) ==
        (device_profile().is_90 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CLUSTER_SIZE));
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  CHECK(api.cuLaunchKernelEx(&config, nothing, nullptr, nullptr) == CUDA_SUCCESS);
}

TEST_CASE("sim launch: threads launch, allocate and unload at once") {
  CurrentDevice device;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const DriverApi& api = device.api;
      api.cuCtxSetCurrent(device.context);
      for (int i = 0; i < 20; ++i) {
        CUmodule module = nullptr;
        CUfunction function = nullptr;
        CUdeviceptr x = 0;
        int value = 0;
        const bool good =
            api.cuModuleLoadData(&module, kAdd) == CUDA_SUCCESS &&
            api.cuModuleGetFunction(&function, module, "add") == CUDA_SUCCESS &&
            api.cuMemAlloc(&x, 256) == CUDA_SUCCESS && api.cuMemsetD32(x, 1, 64) == CUDA_SUCCESS &&
            launch_add(api, function, 2, 32, x, 41) == CUDA_SUCCESS &&
            api.cuMemcpyDtoH(&value, x + 252, 4) == CUDA_SUCCESS && value == 42 &&
            api.cuModuleUnload(module) == CUDA_SUCCESS && api.cuMemFree(x) == CUDA_SUCCESS;
        if (!good) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("sim occupancy: the driver's questions about a kernel") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  const Module module(device, kAdd);
  const CUfunction nothing = module.function("nothing");
  int blocks = -1, grid = -1, block = -1;
  CHECK(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 0) == CUDA_SUCCESS);
  CHECK(blocks == 8);
  CHECK(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 40000) ==
        CUDA_SUCCESS);
  CHECK(blocks == (device_profile().is_90 ? 5 : 4));
  CHECK(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, module.function("add"), 512, 0) ==
        CUDA_SUCCESS);
  CHECK(blocks == 0);
  CHECK(api.cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, nullptr, 0, 0) ==
        CUDA_SUCCESS);
  CHECK(block == 1024);
  CHECK(grid == 2 * 132);
  const CUoccupancyB2DSize quarter = [](int size) { return std::size_t(size) * 160; };
  CHECK(api.cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, quarter, 0, 512) ==
        CUDA_SUCCESS);
  CHECK(block <= 512);
  std::size_t shared = 0;
  CHECK(api.cuOccupancyAvailableDynamicSMemPerBlock(&shared, nothing, 2, 512) == CUDA_SUCCESS);
  CHECK(shared == (device_profile().is_90 ? 233472u : 167936u) / 2 - 1024);
  CHECK(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 512, shared) ==
        CUDA_SUCCESS);
  CHECK(blocks == 2);
}
