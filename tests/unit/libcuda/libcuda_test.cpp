// libcuda.so.1 with the simulated device: its exported functions, look-up by version, a program.
#include "driver/driver_api.h"
#include "driver/shared_library.h"
#include "unit/base/temporary_directory.h"

#include <doctest/doctest.h>

#include <vector>

using namespace kernwright;

namespace {

/// Open for good, as a driver is: nobody else owns its objects of the process.
const SharedLibrary& library() {
  static std::string error;
  static const SharedLibrary instance = [] {
    SharedLibrary opened = SharedLibrary::open(LIBCUDA, error);
    opened.keep_open();
    return opened;
  }();
  REQUIRE_MESSAGE(static_cast<bool>(instance), error);
  return instance;
}

/// The exported function `symbol` with the signature of a slot.
template <typename Function>
Function exported(Function, const char* symbol) {
  Function function = nullptr;
  set_function(function, library().symbol(symbol));
  const bool found = function != nullptr;
  REQUIRE_MESSAGE(found, symbol);
  return function;
}
#define EXPORTED(name, symbol) exported(DriverApi{}.name, #symbol)

using Create2 = CUresult (*)(CUcontext*, unsigned int, CUdevice);
using Create3 = CUresult (*)(CUcontext*, void*, int, unsigned int, CUdevice);
using Create4 = CUresult (*)(CUcontext*, void*, unsigned int, CUdevice);
using Destroy = CUresult (*)(CUcontext);

void* by_version(const char* name, int version, int* status) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult found{};
  const auto look_up = EXPORTED(cuGetProcAddress, cuGetProcAddress_v2);
  CHECK(look_up(name, &function, version, 0, &found) == CUDA_SUCCESS);
  *status = found;
  return function;
}

constexpr const char* kTriple = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry triple(.param .u64 x, .param .u32 n) {
  .reg .pred %out;
  .reg .b32 %i, %n, %v, %b, %d;
  .reg .b64 %x;
  ld.param.u64 %x, [x];
  ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x;
  mov.u32 %d, %ntid.x;
  mov.u32 %b, %tid.x;
  mad.lo.u32 %i, %i, %d, %b;
  setp.ge.u32 %out, %i, %n;
  @%out exit;
  mad.wide.u32 %x, %i, 4, %x;
  ld.global.u32 %v, [%x];
  mul.lo.u32 %v, %v, 3;
  st.global.u32 [%x], %v;
  ret;
})";

}  // namespace

TEST_CASE("libcuda: every function of the table is exported under NVIDIA's name") {
  DriverApi api;
  for_each_slot(api, [](const DriverRow& row, auto) {
    if (row.since == 0) return;
    const bool found = library().symbol(row.symbol) != nullptr;
    CHECK_MESSAGE(found, row.symbol);
  });
}

TEST_CASE("libcuda: a program of the driver runs in a context of its own") {
  REQUIRE(EXPORTED(cuInit, cuInit)(0) == CUDA_SUCCESS);
  CUdevice device = -1;
  REQUIRE(EXPORTED(cuDeviceGet, cuDeviceGet)(&device, 0) == CUDA_SUCCESS);
  CUcontext context = nullptr, current = nullptr;
  REQUIRE(exported(Create2{}, "cuCtxCreate_v2")(&context, 0, device) == CUDA_SUCCESS);
  CHECK(EXPORTED(cuCtxGetCurrent, cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == context);

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(EXPORTED(cuModuleLoadData, cuModuleLoadData)(&module, kTriple) == CUDA_SUCCESS);
  REQUIRE(EXPORTED(cuModuleGetFunction, cuModuleGetFunction)(&function, module, "triple") ==
          CUDA_SUCCESS);
  std::vector<std::uint32_t> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i);
  const std::size_t bytes = values.size() * sizeof values[0];
  CUdeviceptr x = 0;
  REQUIRE(EXPORTED(cuMemAlloc, cuMemAlloc_v2)(&x, bytes) == CUDA_SUCCESS);
  REQUIRE(EXPORTED(cuMemcpyHtoD, cuMemcpyHtoD_v2)(x, values.data(), bytes) == CUDA_SUCCESS);
  unsigned int n = 1000;
  void* parameters[] = {&x, &n};
  const auto launch = EXPORTED(cuLaunchKernel, cuLaunchKernel);
  REQUIRE(launch(function, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  REQUIRE(EXPORTED(cuMemcpyDtoH, cuMemcpyDtoH_v2)(values.data(), x, bytes) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == 3 * i);

  n = 1001;  // one element too many is found
  CHECK(launch(function, 8, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);

  CHECK(EXPORTED(cuMemFree, cuMemFree_v2)(x) == CUDA_SUCCESS);
  CHECK(EXPORTED(cuModuleUnload, cuModuleUnload)(module) == CUDA_SUCCESS);
  CHECK(exported(Destroy{}, "cuCtxDestroy_v2")(context) == CUDA_SUCCESS);
  CHECK(EXPORTED(cuCtxGetCurrent, cuCtxGetCurrent)(&current) == CUDA_SUCCESS);
  CHECK(current == nullptr);
}

TEST_CASE("libcuda: contexts of each signature, and what they refuse") {
  REQUIRE(EXPORTED(cuInit, cuInit)(0) == CUDA_SUCCESS);
  CUcontext first = nullptr, second = nullptr;
  const auto create3 = exported(Create3{}, "cuCtxCreate_v3");
  const auto create4 = exported(Create4{}, "cuCtxCreate_v4");
  const auto destroy = exported(Destroy{}, "cuCtxDestroy_v2");
  REQUIRE(create3(&first, nullptr, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(create4(&second, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(first == second);  // a device has one
  CHECK(destroy(second) == CUDA_SUCCESS);
  CUdevice device = -1;
  CHECK(EXPORTED(cuCtxGetDevice, cuCtxGetDevice)(&device) == CUDA_SUCCESS);
  CHECK(device == 0);
  CHECK(destroy(first) == CUDA_SUCCESS);
  CHECK(destroy(first) != CUDA_SUCCESS);
  CHECK(destroy(nullptr) != CUDA_SUCCESS);

  // CUctxCreateParams: all left out, as CUDA's samples have it, then affinity, then graphics.
  struct {
    void* affinity = nullptr;
    int count = 0;
    void* graphics = nullptr;
  } parameters;
  REQUIRE(create4(&first, &parameters, 0, 0) == CUDA_SUCCESS);
  CHECK(destroy(first) == CUDA_SUCCESS);
  int something = 0;
  parameters.affinity = &something;
  parameters.count = 1;
  CHECK(create4(&first, &parameters, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  parameters = {.graphics = &something};
  CHECK(create4(&first, &parameters, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(create3(&first, &something, 1, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
  CHECK(create4(&first, nullptr, 0, 999) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(create4(nullptr, nullptr, 0, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("libcuda: look-up by version never gives a function of another signature") {
  int status = -1;
  void* const second = by_version("cuCtxCreate", 11000, &status);
  void* const third = by_version("cuCtxCreate", 12000, &status);
  void* const fourth = by_version("cuCtxCreate", 13000, &status);
  CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  CHECK(second != nullptr);
  CHECK(second != third);
  CHECK(third != fourth);
  CHECK(by_version("cuCtxCreate", 12040, &status) == third);
  CHECK(by_version("cuCtxCreate", 3000, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  void* const by_device = by_version("cuMemAdvise", 12000, &status);
  CHECK(by_device != nullptr);
  CHECK(by_version("cuMemAdvise", 13000, &status) != by_device);
  CHECK(by_version("cuGraphAddNode", 13000, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(by_version("cuGetProcAddress", 13000, &status) != nullptr);
  CHECK(by_version("cuNoSuchFunction", 13000, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const auto look_up = EXPORTED(cuGetProcAddress, cuGetProcAddress_v2);
  void* function = nullptr;
  CHECK(look_up("cuGraphAddNode", &function, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
  CHECK(look_up("cuInit", &function, 13000, 3, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(look_up(nullptr, &function, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("libcuda: functions that others make up") {
  REQUIRE(EXPORTED(cuInit, cuInit)(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  REQUIRE(exported(Create2{}, "cuCtxCreate_v2")(&context, 0, 0) == CUDA_SUCCESS);

  int major = 0, minor = 0;
  using Capability = CUresult (*)(int*, int*, CUdevice);
  const auto capability = exported(Capability{}, "cuDeviceComputeCapability");
  CHECK(capability(&major, &minor, 0) == CUDA_SUCCESS);
  CHECK(major >= 8);
  CHECK(capability(&major, &minor, 999) == CUDA_ERROR_INVALID_DEVICE);

  // A module in a file.
  using Load = CUresult (*)(CUmodule*, const char*);
  const auto load = exported(Load{}, "cuModuleLoad");
  const test::TemporaryDirectory folder;
  const std::string path = folder / "triple.ptx";
  test::write_text(path, kTriple);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  REQUIRE(load(&module, path.c_str()) == CUDA_SUCCESS);
  REQUIRE(EXPORTED(cuModuleGetFunction, cuModuleGetFunction)(&function, module, "triple") ==
          CUDA_SUCCESS);
  CUmodule none = nullptr;
  CHECK(load(&none, (path + ".not").c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(load(&none, folder.path().c_str()) == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(&none, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(none == nullptr);
  using Prefer = CUresult (*)(CUfunction, int);
  const auto prefer = exported(Prefer{}, "cuFuncSetCacheConfig");
  CHECK(prefer(function, 2) == CUDA_SUCCESS);
  CHECK(prefer(function, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(prefer(nullptr, 2) != CUDA_SUCCESS);

  // Rows of 33 elements, copied from the host and back by whoever knows where they are.
  using Pitch = CUresult (*)(CUdeviceptr*, std::size_t*, std::size_t, std::size_t, unsigned int);
  const auto allocate = exported(Pitch{}, "cuMemAllocPitch_v2");
  CUdeviceptr x = 0;
  std::size_t pitch = 0;
  REQUIRE(allocate(&x, &pitch, 33 * 4, 4, 4) == CUDA_SUCCESS);
  CHECK(pitch == 512);
  CHECK(allocate(&x, &pitch, 33 * 4, 4, 3) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(&x, &pitch, 33 * 4, 0, 4) == CUDA_ERROR_INVALID_VALUE);
  CHECK(allocate(&x, &pitch, ~std::size_t{0}, 4, 4) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(allocate(&x, &pitch, std::size_t{1} << 40, std::size_t{1} << 40, 4) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  using Copy = CUresult (*)(CUdeviceptr, CUdeviceptr, std::size_t);
  const auto copy = exported(Copy{}, "cuMemcpy");
  const auto address = [](auto& values) { return reinterpret_cast<CUdeviceptr>(values.data()); };
  std::vector<std::uint32_t> values(4 * 128), got(4 * 128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(7 * i);
  const std::size_t bytes = values.size() * sizeof values[0];
  CHECK(copy(x, address(values), bytes) == CUDA_SUCCESS);
  using Cooperative =
      CUresult (*)(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                   unsigned int, unsigned int, CUstream, void**);
  const auto launch = exported(Cooperative{}, "cuLaunchCooperativeKernel");
  unsigned int n = 512;
  void* parameters[] = {&x, &n};
  CHECK(launch(function, 4, 1, 1, 128, 1, 1, 0, nullptr, parameters) == CUDA_SUCCESS);
  // More blocks than the device holds at a time.
  CHECK(launch(function, 1 << 20, 1, 1, 128, 1, 1, 0, nullptr, parameters) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  CHECK(copy(address(got), x, bytes) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(got[i] == 3 * values[i]);
  CHECK(copy(x, x + bytes, bytes) != CUDA_SUCCESS);

  int status = -1;
  CHECK(by_version("cuMemcpy", 12000, &status) != nullptr);
  CHECK(by_version("cuEventElapsedTime", 12000, &status) !=
        by_version("cuEventElapsedTime", 13000, &status));
  CHECK(EXPORTED(cuModuleUnload, cuModuleUnload)(module) == CUDA_SUCCESS);
  CHECK(exported(Destroy{}, "cuCtxDestroy_v2")(context) == CUDA_SUCCESS);
}

TEST_CASE("libcuda: the undocumented tables are small, and their functions refuse") {
  using Export = CUresult (*)(const void**, const CUuuid*);
  const void* table = nullptr;
  const CUuuid any{};
  REQUIRE(exported(Export{}, "cuGetExportTable")(&table, &any) == CUDA_SUCCESS);
  CHECK(*static_cast<const std::size_t*>(table) == sizeof(std::size_t));
  CHECK(static_cast<CUresult (*const*)()>(table)[9]() == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(exported(Export{}, "cuGetExportTable")(nullptr, &any) == CUDA_ERROR_INVALID_VALUE);
}
