// The simulated driver's functions for CUDA arrays, textures and surfaces: copies, refusals with
// their codes, lifetimes.
#include "unit/sim/device/stream_fixture.h"

#include <array>
#include <numeric>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// fetch(t, out): out[i] = texel i of a 1-D texture for the threads of a block.
constexpr char kFetch[] = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fetch(.param .u64 t, .param .u64 out)
{
  .reg .f32 %f<4>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [t];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd1, {%r1}];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.f32 [%rd4], %f0;
  ret;
}
)";

constexpr auto kWrong = CUDA_ERROR_INVALID_VALUE;

CUDA_ARRAY3D_DESCRIPTOR floats(std::size_t width, std::size_t height = 0, std::size_t depth = 0,
                               unsigned flags = 0) {
  return {width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags};
}

struct Textures : CurrentDevice {
  CUarray make(const CUDA_ARRAY3D_DESCRIPTOR& d) const {
    CUarray array = nullptr;
    REQUIRE(api.cuArray3DCreate(&array, &d) == CUDA_SUCCESS);
    return array;
  }
  CUresult refusal(const CUDA_ARRAY3D_DESCRIPTOR& d) const {
    CUarray array = nullptr;
    const CUresult result = api.cuArray3DCreate(&array, &d);
    CHECK(array == nullptr);
    return result;
  }
  CUresult texture(CUtexObject* made, const CUDA_RESOURCE_DESC& resource,
                   CUDA_TEXTURE_DESC sampler = {}) const {
    return api.cuTexObjectCreate(made, &resource, &sampler, nullptr);
  }
  CUresult refusal(const CUDA_RESOURCE_DESC& resource, CUDA_TEXTURE_DESC sampler = {}) const {
    CUtexObject made = 0;
    return texture(&made, resource, sampler);
  }
};

CUDA_RESOURCE_DESC over(CUarray array) {
  CUDA_RESOURCE_DESC resource{};
  resource.res.array.hArray = array;
  return resource;
}

CUDA_RESOURCE_DESC linear(CUdeviceptr address, std::size_t bytes) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {address, CU_AD_FORMAT_FLOAT, 1, bytes};
  return resource;
}

CUDA_RESOURCE_DESC pitched(CUdeviceptr address, std::size_t width, std::size_t height,
                           std::size_t pitch) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {address, CU_AD_FORMAT_FLOAT, 1, width, height, pitch};
  return resource;
}

CUDA_MEMCPY3D to_array(CUarray array, const float* from, std::size_t pitch, std::size_t height) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.srcPitch = pitch;
  copy.srcHeight = height;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  return copy;
}

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

}  // namespace

TEST_CASE("sim textures: descriptors of arrays") {
  const Textures device;
  const CUarray array = device.make(floats(6, 5, 4));
  CUDA_ARRAY3D_DESCRIPTOR d{};
  REQUIRE(device.api.cuArray3DGetDescriptor(&d, array) == CUDA_SUCCESS);
  CHECK((d.Width == 6 && d.Height == 5 && d.Depth == 4 && d.Format == CU_AD_FORMAT_FLOAT));
  CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(device.api.cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(device.api.cuArray3DGetDescriptor(&d, array) == CUDA_ERROR_INVALID_HANDLE);
  const CUDA_ARRAY_DESCRIPTOR flat{7, 3, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  CUarray two = nullptr;
  REQUIRE(device.api.cuArrayCreate(&two, &flat) == CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR back{};
  REQUIRE(device.api.cuArrayGetDescriptor(&back, two) == CUDA_SUCCESS);
  CHECK((back.Width == 7 && back.Height == 3 && back.NumChannels == 4));
  CHECK(device.api.cuArrayDestroy(two) == CUDA_SUCCESS);
}

TEST_CASE("sim textures: arrays that the driver refuses") {
  const Textures device;
  CHECK(device.refusal(floats(0)) == kWrong);
  CHECK(device.refusal({4, 0, 0, CU_AD_FORMAT_FLOAT, 3, 0}) == kWrong);
  CHECK(device.refusal({4, 0, 0, static_cast<CUarray_format>(7), 1, 0}) == kWrong);
  CHECK(device.refusal(floats(4, 0, 4)) == kWrong);
  CHECK(device.refusal(floats(4, 4, 0, kArrayLayered)) == kWrong);
  CHECK(device.refusal(floats(4, 5, 6, kArrayCubemap)) == kWrong);
  CHECK(device.refusal(floats(4, 4, 5, kArrayCubemap)) == kWrong);
  CHECK(device.refusal(floats(4, 4, 8, kArrayCubemap | kArrayLayered)) == kWrong);
  CHECK(device.refusal(floats(131073)) == kWrong);
  CHECK(device.refusal(floats(16385, 2, 2)) == kWrong);
  CHECK(device.refusal(floats(32769, 0, 0, kArraySurface)) == kWrong);
  CHECK(device.refusal(floats(4, 4, 4, kArrayGather)) == kWrong);
  CHECK(device.refusal(floats(4, 4, 0, 0x40)) == kWrong);
  CHECK(device.refusal({16384, 16384, 16384, CU_AD_FORMAT_FLOAT, 4, 0}) ==
        CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(device.api.cuArray3DCreate(nullptr, nullptr) == kWrong);
}

TEST_CASE("sim textures: boxes go from memory to arrays and back") {
  const Textures device;
  const CUarray array = device.make(floats(6, 5, 4));
  std::vector<float> values = counted(6 * 5 * 4), back(values.size());
  CUDA_MEMCPY3D whole = to_array(array, values.data(), 24, 5);
  whole.WidthInBytes = 24;
  whole.Height = 5;
  whole.Depth = 4;
  REQUIRE(device.api.cuMemcpy3D(&whole) == CUDA_SUCCESS);
  // A box of 2 x 2 x 2 at (3, 1, 2) becomes -1, from a host box with gaps and an offset.
  const std::vector<float> fives(5 * 3 * 2 + 8, -1.0f);
  CUDA_MEMCPY3D box = to_array(array, fives.data(), 20, 3);
  box.srcXInBytes = 4;
  box.srcY = 1;
  box.dstXInBytes = 12;
  box.dstY = 1;
  box.dstZ = 2;
  box.WidthInBytes = 8;
  box.Height = box.Depth = 2;
  REQUIRE(device.api.cuMemcpy3DAsync(&box, nullptr) == CUDA_SUCCESS);
  for (std::size_t z = 2; z < 4; ++z) {
    for (std::size_t y = 1; y < 3; ++y) {
      for (std::size_t x = 3; x < 5; ++x) values[(z * 5 + y) * 6 + x] = -1.0f;
    }
  }
  CUDA_MEMCPY3D out = whole;
  std::swap(out.srcMemoryType, out.dstMemoryType);
  out.srcArray = array;
  out.dstHost = back.data();
  out.dstPitch = 24;
  out.dstHeight = 5;
  REQUIRE(device.api.cuMemcpy3D(&out) == CUDA_SUCCESS);
  CHECK(back == values);
  // Rows of device memory, and array to array.
  const CUarray flat = device.make(floats(6, 5));
  const CUdeviceptr x = device.upload(values);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  rows.srcDevice = x;
  rows.srcPitch = 48;
  rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  rows.dstArray = flat;
  rows.WidthInBytes = 24;
  rows.Height = 5;
  REQUIRE(device.api.cuMemcpy2D(&rows) == CUDA_SUCCESS);
  CUDA_MEMCPY2D home{};
  home.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  home.srcArray = flat;
  home.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  home.dstDevice = x;
  home.dstPitch = 24;
  home.WidthInBytes = 24;
  home.Height = 5;
  REQUIRE(device.api.cuMemcpy2DAsync(&home, nullptr) == CUDA_SUCCESS);
  const auto gathered = device.download<float>(x, 30);
  for (std::size_t i = 0; i < 30; ++i) CHECK(gathered[i] == values[i / 6 * 12 + i % 6]);
  for (const CUarray one : {array, flat}) CHECK(device.api.cuArrayDestroy(one) == CUDA_SUCCESS);
  CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
}

TEST_CASE("sim textures: copies that the driver refuses") {
  const Textures device;
  const CUarray array = device.make({8, 4, 0, CU_AD_FORMAT_FLOAT, 2, 0});
  const std::vector<float> values(64);
  const auto refused = [&](auto change) {
    CUDA_MEMCPY3D copy = to_array(array, values.data(), 64, 4);
    copy.WidthInBytes = 64;
    copy.Height = 4;
    copy.Depth = 1;
    change(copy);
    return device.api.cuMemcpy3DAsync(&copy, nullptr);
  };
  CHECK(refused([](CUDA_MEMCPY3D&) {}) == CUDA_SUCCESS);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.WidthInBytes = 72; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.Height = 5; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.Depth = 2; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.dstXInBytes = 8; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.dstXInBytes = 4, c.WidthInBytes = 8; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.srcPitch = 60; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.srcLOD = 1; }) == kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.srcMemoryType = static_cast<CUmemorytype>(0); }) ==
        kWrong);
  CHECK(refused([](CUDA_MEMCPY3D& c) { c.dstArray = nullptr; }) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(device.api.cuMemcpy3D(nullptr) == kWrong);
  // Device memory is bounds checked row by row.
  const CUdeviceptr x = device.allocate(16);
  const CUresult beyond = refused([&](CUDA_MEMCPY3D& c) {
    c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    c.srcDevice = x;
  });
  CHECK(beyond == kWrong);
  CHECK(device.report().kind == FaultKind::bounds);
  CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("sim textures: objects and what they were made of") {
  const Textures device;
  const CUarray array = device.make(floats(8, 4, 0, kArraySurface));
  CUtexObject texture = 0;
  CUDA_TEXTURE_DESC sampler{};
  sampler.filterMode = CU_TR_FILTER_MODE_LINEAR;
  sampler.borderColor[1] = 2.5f;
  REQUIRE(device.texture(&texture, over(array), sampler) == CUDA_SUCCESS);
  CUsurfObject surface = 0;
  const CUDA_RESOURCE_DESC resource = over(array);
  REQUIRE(device.api.cuSurfObjectCreate(&surface, &resource) == CUDA_SUCCESS);
  CHECK(texture != surface);
  CUDA_RESOURCE_DESC back{};
  REQUIRE(device.api.cuTexObjectGetResourceDesc(&back, texture) == CUDA_SUCCESS);
  CHECK(back.res.array.hArray == array);
  REQUIRE(device.api.cuSurfObjectGetResourceDesc(&back, surface) == CUDA_SUCCESS);
  CUDA_TEXTURE_DESC told{};
  REQUIRE(device.api.cuTexObjectGetTextureDesc(&told, texture) == CUDA_SUCCESS);
  CHECK((told.filterMode == CU_TR_FILTER_MODE_LINEAR && told.borderColor[1] == 2.5f));
  CHECK(device.api.cuTexObjectDestroy(surface) == kWrong);
  CHECK(device.api.cuSurfObjectDestroy(texture) == kWrong);
  CHECK(device.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
  CHECK(device.api.cuTexObjectDestroy(texture) == kWrong);
  CHECK(device.api.cuTexObjectGetTextureDesc(&told, texture) == kWrong);
  CHECK(device.api.cuSurfObjectDestroy(surface) == CUDA_SUCCESS);
  CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
}

TEST_CASE("sim textures: objects that the driver refuses") {
  const Textures device;
  const CUarray array = device.make(floats(8, 4));
  const CUarray bytes = device.make({8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0});
  const CUdeviceptr x = device.allocate(4096);
  CUDA_TEXTURE_DESC sampler{};
  sampler.filterMode = CU_TR_FILTER_MODE_LINEAR;
  CHECK(device.refusal(over(nullptr)) == kWrong);
  CUDA_RESOURCE_DESC flagged = over(array);
  flagged.flags = 1;
  CHECK(device.refusal(flagged) == kWrong);
  sampler.flags = kTextureReadAsInteger;
  CHECK(device.refusal(over(bytes), sampler) == kWrong);
  sampler.flags = 0x10;  // sRGB
  CHECK(device.refusal(over(array), sampler) == CUDA_ERROR_NOT_SUPPORTED);
  sampler.flags = 0;
  sampler.addressMode[1] = static_cast<CUaddress_mode>(4);
  CHECK(device.refusal(over(array), sampler) == kWrong);
  CUDA_TEXTURE_DESC sharp{};
  sharp.maxAnisotropy = 16;
  CHECK(device.refusal(over(array), sharp) == CUDA_ERROR_NOT_SUPPORTED);
  CUDA_RESOURCE_DESC mipmapped = over(array);
  mipmapped.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  CHECK(device.refusal(mipmapped) == CUDA_ERROR_NOT_SUPPORTED);
  const CUDA_RESOURCE_VIEW_DESC view{};
  CUtexObject made = 0;
  const CUDA_RESOURCE_DESC resource = over(array);
  const CUDA_TEXTURE_DESC plain{};
  CHECK(device.api.cuTexObjectCreate(&made, &resource, &plain, &view) == CUDA_ERROR_NOT_SUPPORTED);
  CUsurfObject surface = 0;
  CHECK(device.api.cuSurfObjectCreate(&surface, &resource) == kWrong);
  CHECK(device.refusal(linear(x + 4, 64)) == kWrong);
  CHECK(device.refusal(linear(x, 3)) == kWrong);
  CHECK(device.refusal(pitched(x, 8, 4, 33)) == kWrong);
  CHECK(device.refusal(pitched(x, 9, 4, 32)) == kWrong);
  CHECK(device.refusal(pitched(x, 8, 0, 32)) == kWrong);
  // Memory not allocated.
  CHECK(device.refusal(linear(x, 8192)) == kWrong);
  CHECK(device.report().kind == FaultKind::bounds);
  CHECK(device.refusal(pitched(x, 8, 1000, 32)) == kWrong);
  CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  CHECK(device.refusal(linear(x, 64)) == kWrong);
  CHECK(device.report().kind == FaultKind::use_after_free);
  for (const CUarray one : {array, bytes}) CHECK(device.api.cuArrayDestroy(one) == CUDA_SUCCESS);
}

namespace {

struct Fetching : Textures {
  Fetching() : out(allocate(256)) {
    REQUIRE(api.cuModuleLoadData(&module, kFetch) == CUDA_SUCCESS);
    REQUIRE(api.cuModuleGetFunction(&kernel, module, "fetch") == CUDA_SUCCESS);
  }
  ~Fetching() {
    api.cuModuleUnload(module);
    api.cuMemFree(out);
  }
  CUresult fetch(CUtexObject texture, unsigned threads, CUstream stream = nullptr) {
    void* parameters[] = {&texture, &out};
    const CUresult result =
        api.cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
    return result != CUDA_SUCCESS ? result : api.cuCtxSynchronize();
  }
  CUdeviceptr out = 0;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
};

}  // namespace

TEST_CASE("sim textures: handles are found out after their end") {
  const InIssueOrder order;
  Fetching device;
  const auto values = counted(16);
  const CUdeviceptr x = device.upload(values);
  CUtexObject texture = 0;
  REQUIRE(device.texture(&texture, linear(x, 64)) == CUDA_SUCCESS);
  REQUIRE(device.fetch(texture, 20) == CUDA_SUCCESS);
  auto read = device.download<float>(device.out, 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(read[i] == (i < 16 ? values[i] : 0));
  // The memory goes before the texture.
  CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  CHECK(device.fetch(texture, 1) != CUDA_SUCCESS);
  CHECK(device.report().kind == FaultKind::use_after_free);
  // The texture goes; its handle is never another's.
  CHECK(device.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
  const CUarray array = device.make(floats(16));
  CUtexObject next = 0;
  REQUIRE(device.texture(&next, over(array)) == CUDA_SUCCESS);
  CHECK(next != texture);
  CHECK(device.fetch(texture, 1) != CUDA_SUCCESS);
  CHECK(device.report().kind == FaultKind::use_after_free);
  CHECK(device.fetch(next, 1) == CUDA_SUCCESS);
  // The array goes before its texture.
  CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(device.fetch(next, 1) != CUDA_SUCCESS);
  Fault report = device.report();
  CHECK(report.kind == FaultKind::use_after_free);
  CHECK(report.message == "a 1-D array of (16) elements behind a texture object was destroyed");
  CHECK(device.fetch(42, 1) != CUDA_SUCCESS);
  CHECK(device.report().message == "0x2a is no texture object");
  CHECK(device.api.cuTexObjectDestroy(next) == CUDA_SUCCESS);
}

TEST_CASE("sim textures: copies and kernels keep the order of a stream") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Seeded seeded(seed);
    Fetching device;
    CUstream stream = nullptr;
    REQUIRE(device.api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    const CUarray array = device.make(floats(16));
    CUtexObject texture = 0;
    REQUIRE(device.texture(&texture, over(array)) == CUDA_SUCCESS);
    std::vector<float> values(16, 3.0f);
    CUDA_MEMCPY3D copy = to_array(array, values.data(), 64, 1);
    copy.WidthInBytes = 64;
    copy.Height = copy.Depth = 1;
    REQUIRE(device.api.cuMemcpy3DAsync(&copy, stream) == CUDA_SUCCESS);
    std::fill(values.begin(), values.end(), 4.0f);  // pageable memory was read at the call
    void* parameters[] = {&texture, &device.out};
    REQUIRE(device.api.cuLaunchKernel(device.kernel, 1, 1, 1, 16, 1, 1, 0, stream, parameters,
                                      nullptr) == CUDA_SUCCESS);
    REQUIRE(device.api.cuMemcpy3DAsync(&copy, stream) == CUDA_SUCCESS);
    REQUIRE(device.api.cuStreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(device.download<float>(device.out, 16) == std::vector<float>(16, 3.0f));
    CHECK(device.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
    CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
    CHECK(device.api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  }
}

TEST_CASE("sim textures: a context takes its arrays and objects along") {
  CUarray array = nullptr;
  CUtexObject texture = 0;
  std::size_t before = 0, all = 0, after = 0;
  {
    const Textures device;
    REQUIRE(device.api.cuMemGetInfo(&before, &all) == CUDA_SUCCESS);
    array = device.make(floats(1024, 1024));
    REQUIRE(device.texture(&texture, over(array)) == CUDA_SUCCESS);
    REQUIRE(device.api.cuMemGetInfo(&after, &all) == CUDA_SUCCESS);
    CHECK(before - after >= 4u << 20);
  }
  const Textures device;
  REQUIRE(device.api.cuMemGetInfo(&after, &all) == CUDA_SUCCESS);
  CHECK(after >= before);
  CHECK(device.api.cuTexObjectDestroy(texture) == kWrong);
  CHECK(device.api.cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("sim textures: streams that nothing orders are found") {
  struct StreamChecks {
    StreamChecks() { set_stream_checks(true); }
    ~StreamChecks() { Seeded::restore(); }
  };
  Fetching device;
  CUstream stream[2] = {};
  for (CUstream& one : stream)
    REQUIRE(device.api.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUarray array = device.make(floats(16));
  const CUdeviceptr x = device.upload(counted(16));
  CUtexObject texture = 0;
  REQUIRE(device.texture(&texture, over(array)) == CUDA_SUCCESS);
  CUDA_MEMCPY3D copy = to_array(array, nullptr, 64, 1);
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x;
  copy.WidthInBytes = 64;
  copy.Height = copy.Depth = 1;
  void* parameters[] = {&texture, &device.out};
  for (const int reader : {0, 1}) {
    REQUIRE(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
    const StreamChecks checks;
    REQUIRE(device.api.cuMemcpy3DAsync(&copy, stream[0]) == CUDA_SUCCESS);
    const CUresult launched = device.api.cuLaunchKernel(device.kernel, 1, 1, 1, 16, 1, 1, 0,
                                                        stream[reader], parameters, nullptr);
    CHECK((launched == CUDA_SUCCESS) == (reader == 0));
    if (reader == 1) CHECK(device.report().kind == FaultKind::race);
    device.api.cuCtxSynchronize();
  }
  CHECK(device.api.cuTexObjectDestroy(texture) == CUDA_SUCCESS);
  CHECK(device.api.cuArrayDestroy(array) == CUDA_SUCCESS);
  CHECK(device.api.cuMemFree(x) == CUDA_SUCCESS);
  for (const CUstream one : stream) CHECK(device.api.cuStreamDestroy(one) == CUDA_SUCCESS);
}
