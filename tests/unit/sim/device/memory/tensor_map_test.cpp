// The simulated driver's functions for tensor maps: their bytes and refusals.
#include "sim/tensor_map.h"
#include "sim/device/profile.h"
#include "unit/sim/device/device_fixture.h"

#include <cstring>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

struct Arguments {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 4;
  std::uintptr_t address = 0x7f0000010000;
  cuuint64_t extents[5] = {64, 30, 20, 10, 1}, strides[4] = {128, 3840, 76800, 0};
  cuuint32_t box[5] = {32, 8, 4, 2, 1}, steps[5] = {1, 2, 1, 1, 1};
  int lower[3] = {-1, 2, 0}, upper[3] = {1, -3, 0};
  cuuint32_t channels = 32, pixels = 100;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  CUresult tiled(CUtensorMap* map) const {
    return driver_api().cuTensorMapEncodeTiled(
        map, type, rank, reinterpret_cast<void*>(address), extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, fill);
  }
  CUresult im2col(CUtensorMap* map) const {
    return driver_api().cuTensorMapEncodeIm2col(map, type, rank, reinterpret_cast<void*>(address),
                                                extents, strides, lower, upper, channels, pixels,
                                                steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, fill);
  }
  TensorMapParameters parameters(bool is_im2col) const {
    TensorMapParameters map;
    map.address = address;
    map.rank = 4;
    map.type = 6;
    map.extent = {64, 30, 20, 10};
    map.stride = {0, 128, 3840, 76800};
    map.box = {32, 8, 4, 2};
    map.step = {1, 2, 1, 1};
    map.swizzle = 2;
    map.l2_promotion = 2;
    if (!is_im2col) return map;
    map.im2col = true;
    map.box = {32};
    map.pixels = 100;
    map.lower = {-1, 2};
    map.upper = {1, -3};
    return map;
  }
};

std::optional<TensorMapParameters> decoded(const CUtensorMap& map) {
  return decode_tensor_map(reinterpret_cast<const std::byte*>(map.opaque));
}

}  // namespace

TEST_CASE("sim tensor maps: a device below 9.0 has none") {
  if (device_profile().is_90) return;
  const CurrentDevice device;
  CUtensorMap map{};
  CHECK(Arguments{}.tiled(&map) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(Arguments{}.im2col(&map) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(device.api.cuTensorMapReplaceAddress(&map, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("sim tensor maps: the descriptors say what was asked for") {
  if (!device_profile().is_90) return;
  CUtensorMap map{};
  {
    const CurrentDevice device;
    const Arguments arguments;
    CHECK(arguments.tiled(&map) == CUDA_SUCCESS);
    CHECK(decoded(map) == arguments.parameters(false));
    const auto moved = arguments.address + 4096;
    CHECK(device.api.cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(moved)) ==
          CUDA_SUCCESS);
    CHECK(decoded(map)->address == moved);
    CHECK(arguments.im2col(&map) == CUDA_SUCCESS);
    CHECK(decoded(map) == arguments.parameters(true));
  }
  CHECK(Arguments{}.tiled(&map) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("sim tensor maps: wrong arguments leave the descriptor alone") {
  if (!device_profile().is_90) return;
  const CurrentDevice device;
  CUtensorMap map{};
  REQUIRE(Arguments{}.tiled(&map) == CUDA_SUCCESS);
  const CUtensorMap before = map;
  const auto refused = [&](auto change) {
    Arguments arguments;
    change(arguments);
    CHECK(arguments.tiled(&map) == CUDA_ERROR_INVALID_VALUE);
    CHECK(arguments.im2col(&map) == CUDA_ERROR_INVALID_VALUE);
    CHECK(std::memcmp(&map, &before, sizeof map) == 0);
  };
  refused([](Arguments& a) { a.rank = 0; });
  refused([](Arguments& a) { a.rank = 6; });
  refused([](Arguments& a) { a.type = static_cast<CUtensorMapDataType>(99); });
  refused([](Arguments& a) { a.address += 4; });
  refused([](Arguments& a) { a.extents[2] = 0; });
  refused([](Arguments& a) { a.strides[1] = 20; });
  refused([](Arguments& a) { a.steps[1] = 0; });
  refused([](Arguments& a) { a.box[0] = a.channels = 40; });
  refused([](Arguments& a) { a.fill = static_cast<CUtensorMapFloatOOBfill>(2); });
  Arguments low;
  low.rank = 2;
  CHECK(low.im2col(&map) == CUDA_ERROR_INVALID_VALUE);
  Arguments corner;
  corner.lower[1] = 128;
  CHECK(corner.im2col(&map) == CUDA_ERROR_INVALID_VALUE);
  CHECK(Arguments{}.tiled(nullptr) == CUDA_ERROR_INVALID_VALUE);
  auto* const misaligned =
      reinterpret_cast<CUtensorMap*>(reinterpret_cast<std::uintptr_t>(&map) + 8);
  CHECK(Arguments{}.tiled(misaligned) == CUDA_ERROR_INVALID_VALUE);
  CHECK(device.api.cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(24)) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(std::memcmp(&map, &before, sizeof map) == 0);
  CUtensorMap none{};
  CHECK(device.api.cuTensorMapReplaceAddress(&none, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
