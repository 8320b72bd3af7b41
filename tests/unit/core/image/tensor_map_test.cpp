// Tensor maps as values: axes and dimensions, refusals with their messages, other addresses.
#include "core/image/tensor_map.h"

#include "base/errors.h"
#include "sim/tensor_map.h"
#include "unit/core/error_text.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

using namespace kernwright;
using namespace kernwright::testing;

namespace {

TensorLayout halves() {
  return {.address = 0x7f0000010000,
          .data_type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
          .shape = {10, 20, 30, 64}};
}

constexpr std::uint32_t kBox[] = {1, 4, 8, 32};

PixelBox pixels() {
  return {.lower_corner = {2, -1},
          .upper_corner = {-3, 1},
          .channels_per_pixel = 32,
          .pixels_per_column = 100};
}

bool has_tensor_maps(Device& device) { return device.capabilities().tma; }

std::string problem(Device& device, const TensorLayout& tensor,
                    const std::vector<std::uint32_t>& box, const TensorMapOptions& options = {}) {
  return message_of<InvalidArgument>([&] { TensorMap::tiled(device, tensor, box, options); });
}

/// Any parameters within the rules, in the tensor's own order.
struct Any {
  explicit Any(std::uint64_t seed) : random(seed) {}
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  }
  TensorMap map(Device& device, bool is_im2col) {
    for (;;) {
      const auto rank = static_cast<std::size_t>(pick(is_im2col ? 3 : 1, 5));
      const bool is_sliced = rank >= 3 && pick(0, 2) != 0;
      TensorLayout tensor{
          .address = static_cast<CUdeviceptr>(pick(1, (std::int64_t{1} << 42)) * 32),
          .data_type = static_cast<CUtensorMapDataType>(pick(0, 12)),
          .shape = std::vector<std::int64_t>(rank),
          .strides = std::vector<std::int64_t>(rank)};
      TensorMapOptions options;
      options.swizzle = static_cast<CUtensorMapSwizzle>(pick(0, 3));
      options.l2_promotion = static_cast<CUtensorMapL2promotion>(pick(0, 3));
      if (is_sliced) options.interleave = static_cast<CUtensorMapInterleave>(pick(1, 2));
      if (is_floating_tensor(tensor.data_type))
        options.oob_fill = static_cast<CUtensorMapFloatOOBfill>(pick(0, 1));
      std::vector<std::uint32_t> box(rank);
      PixelBox corners;
      const std::uint32_t element = tensor_element_bytes(tensor.data_type);
      const int limit = tensor_corner_limit(static_cast<int>(rank));
      for (std::size_t axis = 0; axis < rank; ++axis) {
        tensor.shape[axis] = pick(1, 5000);
        tensor.strides[axis] = axis + 1 == rank ? element : 32 * pick(1, 1 << 30);
        options.element_strides.push_back(
            axis + 1 == rank ? 1u : static_cast<std::uint32_t>(pick(1, 8)));
        box[axis] = static_cast<std::uint32_t>(pick(1, 16));
        if (axis == 0 || axis + 1 == rank) continue;
        corners.lower_corner.push_back(static_cast<int>(pick(-limit, limit - 1)));
        corners.upper_corner.push_back(static_cast<int>(pick(-limit, limit - 1)));
      }
      box.back() = 16 / element * static_cast<std::uint32_t>(pick(1, 8));
      if (is_sliced) {
        const std::uint32_t slice = options.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
        tensor.strides.back() = slice;
        tensor.shape.push_back(slice / element);
        tensor.strides.push_back(element);
        options.element_strides.push_back(1);
        box[1] = 1;
        box.push_back(slice / element);
      }
      corners.channels_per_pixel = box.back();
      corners.pixels_per_column = static_cast<std::uint32_t>(pick(1, 1024));
      try {
        return is_im2col ? TensorMap::im2col(device, tensor, corners, options)
                         : TensorMap::tiled(device, tensor, box, options);
      } catch (const InvalidArgument&) {
        continue;  // the rules allow too few combinations to meet them all by chance
      }
    }
  }
  std::mt19937_64 random;
};

}  // namespace

TEST_CASE("tensor maps: a device below 9.0 has none") {
  Device& device = test_device();
  if (has_tensor_maps(device)) return;
  const std::string text =
      message_of<DriverError>([&] { TensorMap::tiled(device, halves(), kBox); });
  CHECK(text.find("compute capability 9.0") != std::string::npos);
  CHECK(text.find("KERNWRIGHT_SIM_CAPABILITY=9.0") != std::string::npos);
}

TEST_CASE("tensor maps: the last axis of the array is the driver's dimension 0") {
  const Recorded recorded;
  Device& device = recorded.device;
  if (!has_tensor_maps(device)) return;
  const TensorMap map =
      TensorMap::tiled(device, halves(), kBox,
                       {.element_strides = {1, 1, 2, 1},
                        .swizzle = CU_TENSOR_MAP_SWIZZLE_64B,
                        .l2_promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        .oob_fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA});
  TensorMapParameters expected;
  expected.address = 0x7f0000010000;
  expected.rank = 4;
  expected.type = 6;
  expected.extent = {64, 30, 20, 10};
  expected.stride = {0, 128, 128 * 30, 128 * 30 * 20};
  expected.box = {32, 8, 4, 1};
  expected.step = {1, 2, 1, 1};
  expected.swizzle = 2;
  expected.l2_promotion = 3;
  expected.fills_nan = true;
  CHECK(map.parameters() == expected);
  CHECK(sim::decode_tensor_map(map.bytes().data()) == expected);
  CHECK(map.box_bytes() == 32 * 4 * 4 * 2);
  CHECK(map.identify() ==
        "tensor map of FLOAT16 (10, 20, 30, 64), box (1, 4, 8, 32) on " + device.label());

  const TensorMap columns = TensorMap::im2col(device, halves(), pixels());
  CHECK(columns.parameters().lower == std::array<int, 3>{-1, 2, 0});
  CHECK(columns.parameters().upper == std::array<int, 3>{1, -3, 0});
  CHECK(sim::decode_tensor_map(columns.bytes().data()) == columns.parameters());
  CHECK(columns.box_bytes() == 32 * 100 * 2);
  CHECK_FALSE(columns == map);
  CHECK(columns == TensorMap::im2col(device, halves(), pixels()));
}

TEST_CASE("tensor maps: the device's bytes are those of the simulated device's encoder") {
  const Recorded recorded;
  Device& device = recorded.device;
  if (!has_tensor_maps(device)) return;
  Any any(7);
  for (int round = 0; round < 600; ++round) {
    const TensorMap map = any.map(device, round % 2 != 0);
    CAPTURE(map.identify());
    const auto expected = sim::encode_tensor_map(map.parameters());
    CHECK(std::equal(expected.begin(), expected.end(), map.bytes().begin()));
  }
}

TEST_CASE("tensor maps: the driver accepts what the rules allow, and nothing else") {
  const Recorded recorded;
  Device& device = recorded.device;
  if (!has_tensor_maps(device)) return;
  const ContextGuard guard(device);
  Any any(11);
  const auto turn = [&](TensorMapParameters& map) {  // one number becomes another
    const auto d = static_cast<std::size_t>(any.pick(0, map.rank - 1));
    switch (any.pick(0, 8)) {
      case 0:
        map.address += static_cast<std::uint64_t>(any.pick(1, 4)) * 8;
        break;
      case 1:
        map.extent[d] = any.pick(0, 1) == 0 ? 0 : (std::uint64_t{1} << 32) + 1;
        break;
      case 2:
        map.stride[d] += static_cast<std::uint64_t>(any.pick(1, 4)) * 8;
        break;
      case 3:
        map.stride[d] = std::uint64_t{1} << 40;
        break;
      case 4:
        map.step[d] = static_cast<std::uint32_t>(any.pick(0, 9));
        break;
      case 5:
        map.swizzle = static_cast<int>(any.pick(0, 3));
        break;
      case 6:
        map.interleave = static_cast<int>(any.pick(0, 2));
        break;
      case 7:
        map.box[map.im2col ? 0 : d] = static_cast<std::uint32_t>(any.pick(0, 260));
        break;
      default:
        if (map.im2col) {
          map.pixels = static_cast<std::uint32_t>(any.pick(0, 1) * 1025);
        } else {
          map.box[d] = 257;
        }
    }
  };
  int accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    const bool is_im2col = round % 2 != 0;
    TensorMapParameters map = any.map(device, is_im2col).parameters();
    turn(map);
    CAPTURE(round);
    CUtensorMap descriptor{};
    const auto type = static_cast<CUtensorMapDataType>(map.type);
    const auto rank = static_cast<cuuint32_t>(map.rank);
    void* const address = reinterpret_cast<void*>(map.address);
    const auto interleave = static_cast<CUtensorMapInterleave>(map.interleave);
    const auto swizzle = static_cast<CUtensorMapSwizzle>(map.swizzle);
    const auto promotion = static_cast<CUtensorMapL2promotion>(map.l2_promotion);
    const auto fill = static_cast<CUtensorMapFloatOOBfill>(map.fills_nan ? 1 : 0);
    const DriverApi& api = device.driver();
    const CUresult result =
        is_im2col
            ? api.cuTensorMapEncodeIm2col(&descriptor, type, rank, address, map.extent.data(),
                                          map.stride.data() + 1, map.lower.data(), map.upper.data(),
                                          map.box[0], map.pixels, map.step.data(), interleave,
                                          swizzle, promotion, fill)
            : api.cuTensorMapEncodeTiled(&descriptor, type, rank, address, map.extent.data(),
                                         map.stride.data() + 1, map.box.data(), map.step.data(),
                                         interleave, swizzle, promotion, fill);
    const std::string wrong = check_tensor_map(map);
    CAPTURE(wrong);
    // NVIDIA demands this in its manual alone: driver 580 takes every swizzle.
    if (!device.is_simulated() && wrong.starts_with("interleave 32B needs swizzle")) continue;
    CHECK(result == (wrong.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    accepted += wrong.empty() ? 1 : 0;
  }
  CHECK(accepted > 100);
  CHECK(accepted < 900);
}

TEST_CASE("tensor maps: strides of an axis of extent 1 do not matter") {
  Device& device = test_device();
  if (!has_tensor_maps(device)) return;
  TensorLayout row = halves();
  row.shape = {1, 1, 60};  // rows of 120 bytes
  const std::vector<std::uint32_t> box{1, 1, 8};
  const TensorMap map = TensorMap::tiled(device, row, box);
  CHECK(map.parameters().stride[1] % 16 == 0);
  CHECK(map.parameters().stride[2] % 16 == 0);
}

TEST_CASE("tensor maps: what cannot be is said before the driver is asked") {
  Device& device = test_device();
  if (!has_tensor_maps(device)) return;
  TensorLayout tensor = halves();
  CHECK(problem(device, tensor, {1, 4, 8}) == "a tensor map wants 4 values for its box, got 3");
  CHECK(problem(device, tensor, {1, 4, 8, 32}, {.element_strides = {1}}) ==
        "a tensor map wants 4 values for its element strides, got 1");
  CHECK(problem(device, tensor, {1, 4, 300, 32}) ==
        "a tensor map cannot be made: axis 2: a box of 300 elements is not in 1 to 256");
  tensor.strides = {76800, 3840, 128, 4};
  CHECK(problem(device, tensor, {1, 4, 8, 32}) ==
        "a tensor map cannot be made: axis 3: elements of the last axis must follow each other, 2 "
        "bytes apart, not 4: pass a copy of the array");
  tensor.strides = {76800, -3840, 128, 2};
  CHECK(problem(device, tensor, {1, 4, 8, 32}) ==
        "a tensor map cannot be made: axis 1: a stride of -3840 bytes is negative");
  tensor.strides = {76800, 3848, 128, 2};
  CHECK(problem(device, tensor, {1, 4, 8, 32}) ==
        "a tensor map cannot be made: axis 1: a stride of 3848 bytes is no multiple of 16");
  tensor.strides = {128, 2};
  CHECK(problem(device, tensor, {1, 4, 8, 32}) ==
        "a tensor map wants 4 values for its strides, got 2");
  tensor = halves();
  tensor.shape = {-1};
  CHECK(problem(device, tensor, {8}) ==
        "a tensor map cannot be made: axis 0: an extent of -1 is negative");
  tensor.shape = {1, 1, 1, 1, 1, 1};
  CHECK(problem(device, tensor, {8}) ==
        "a tensor map cannot be made: a tensor has 1 to 5 axes, not 6");
  PixelBox box = pixels();
  box.lower_corner = {1};
  CHECK(message_of<InvalidArgument>([&] { TensorMap::im2col(device, halves(), box); }) ==
        "a tensor map wants 2 values for its lower corner, got 1");
  tensor.shape = {4, 64};
  CHECK(message_of<InvalidArgument>([&] { TensorMap::im2col(device, tensor, pixels()); }) ==
        "a tensor map cannot be made: im2col takes tensors of 3 to 5 axes, not 2");
}

TEST_CASE("tensor maps: with an interleave the array has an axis more, that of a slice") {
  Device& device = test_device();
  if (!has_tensor_maps(device)) return;
  TensorLayout tensor = halves();
  tensor.shape = {3, 5, 7, 40, 8};  // N, C/8, H, W, 8
  const TensorMapOptions options{.element_strides = {1, 1, 2, 3, 1},
                                 .interleave = CU_TENSOR_MAP_INTERLEAVE_16B,
                                 .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
  const TensorMap map =
      TensorMap::tiled(device, tensor, std::vector<std::uint32_t>{2, 1, 3, 16, 8}, options);
  TensorMapParameters expected;
  expected.address = 0x7f0000010000;
  expected.rank = 4;
  expected.type = 6;
  expected.extent = {40, 7, 5, 3};
  expected.stride = {0, 16 * 40, 16 * 40 * 7, 16 * 40 * 7 * 5};
  expected.box = {16, 3, 1, 2};
  expected.step = {3, 2, 1, 1};
  expected.interleave = 1;
  expected.swizzle = 3;
  CHECK(map.parameters() == expected);
  CHECK(map.box_bytes() == 16 * 6 * 2 * 2);
  CHECK(map.identify() ==
        "tensor map of FLOAT16 (3, 5, 7, 40) of slices of 16 bytes, box (2, 1, "
        "3, 16) on " +
            device.label());
  PixelBox box = pixels();
  box.channels_per_pixel = 8;
  const TensorMap columns = TensorMap::im2col(device, tensor, box, options);
  CHECK(columns.parameters().extent == expected.extent);
  CHECK(columns.parameters().lower == std::array<int, 3>{-1, 2, 0});
  CHECK(columns.box_bytes() == 100 * 16);

  const auto wrong = [&](const std::vector<std::uint32_t>& dims) {
    return problem(device, tensor, dims, options);
  };
  const std::string made = "a tensor map cannot be made: ";
  CHECK(wrong({2, 2, 3, 16, 8}) ==
        made + "axis 1: a box of 2 slices: with an interleave a copy takes one");
  CHECK(wrong({2, 1, 3, 16, 4}) == made + "axis 4: a copy takes whole slices of 8 elements, not 4");
  CHECK(wrong({2, 1, 3, 16}) == "a tensor map wants 5 values for its box, got 4");
  CHECK(wrong({2, 1, 3, 257, 8}) == made + "axis 3: a box of 257 elements is not in 1 to 256");
  CHECK(message_of<InvalidArgument>([&] {
          TensorMap::im2col(device, tensor, pixels(), options);
        }) == made + "32 channels of 2 bytes per pixel: interleave 16B takes one slice, 16 bytes");
  tensor.strides = {11200 * 2, 2240 * 2, 320 * 2, 32, 2};
  CHECK(wrong({2, 1, 3, 16, 8}) ==
        made +
            "axis 3: slices must follow each other, 16 bytes apart, not 32: pass a copy of the "
            "array");
  tensor.shape.back() = 16;
  tensor.strides.clear();
  CHECK(wrong({2, 1, 3, 16, 16}) == made +
                                        "axis 4: 16 elements of 2 bytes: with that interleave "
                                        "the last axis is a slice of 16 bytes");
  tensor.shape = {8, 40, 8};
  CHECK(wrong({1, 16, 8}) == made +
                                 "with an interleave a tensor has 4 to 6 axes, the last that of "
                                 "a slice, not 3");
  tensor.shape = {3, 5, 999, 40, 8};
  CHECK(problem(device, tensor, {2, 1, 256, 40, 8}, {.interleave = CU_TENSOR_MAP_INTERLEAVE_16B}) ==
        made +
            "a box of 327680 bytes is larger than 233472, what a multiprocessor's shared memory "
            "holds");
}

TEST_CASE("tensor maps: another address keeps the rest, and its own memory alive") {
  const Recorded recorded;
  Device& device = recorded.device;
  if (!has_tensor_maps(device)) return;
  const auto first = std::make_shared<int>(1), second = std::make_shared<int>(2);
  TensorLayout tensor = halves();
  tensor.owner = first;
  TensorMap map = TensorMap::tiled(device, tensor, kBox);
  const TensorMap copy = map;
  CHECK(first.use_count() == 4);
  CHECK_THROWS_AS(map.replace_address(tensor.address + 8, second), InvalidArgument);
  CHECK(map == copy);
  map.replace_address(tensor.address + 4096, second);
  CHECK(second.use_count() == 2);
  CHECK(first.use_count() == 3);
  CHECK_FALSE(map == copy);
  tensor.address += 4096;
  CHECK(map == TensorMap::tiled(device, tensor, kBox));
}

TEST_CASE("tensor maps: element types that maps have, and those that they have not") {
  CHECK(tensor_map_data_type(ScalarType::bfloat16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  CHECK(tensor_map_data_type(ScalarType::int8) == CU_TENSOR_MAP_DATA_TYPE_UINT8);
  CHECK(tensor_map_data_type(ScalarType::float8_e5m2) == CU_TENSOR_MAP_DATA_TYPE_UINT8);
  CHECK(tensor_map_data_type(ScalarType::int16) == CU_TENSOR_MAP_DATA_TYPE_UINT16);
  CHECK_THROWS_AS(tensor_map_data_type(ScalarType::complex64), InvalidArgument);
  for (int i = 0; i < kScalarTypeCount; ++i) {
    const auto type = static_cast<ScalarType>(i);
    if (is_complex(type)) continue;
    CHECK(tensor_element_bytes(tensor_map_data_type(type)) == scalar_size(type));
  }
}

TEST_CASE("tensor maps: as arguments they are 128 bytes of their device") {
  Device& device = test_device();
  if (!has_tensor_maps(device)) return;
  const TensorMap map = TensorMap::tiled(device, halves(), kBox);
  KernelSignature signature{.name = "k",
                            .lowered = "k",
                            .parameters = {{.name = "map",
                                            .type = "CUtensorMap",
                                            .kind = ParameterKind::aggregate,
                                            .size = 128,
                                            .alignment = 64}}};
  const std::array<ArgumentView, 1> views{KernelArgument<TensorMap>::view(map)};
  std::array<ArgumentSlot, 1> slots;
  std::array<void*, 1> where;
  pack_arguments(signature, device, views, slots, where);
  CHECK(std::memcmp(where[0], map.bytes().data(), 128) == 0);
  signature.parameters[0].size = 64;
  CHECK(
      message_of<ArgumentError>([&] { pack_arguments(signature, device, views, slots, where); }) ==
      "k(CUtensorMap map): parameter 1 (CUtensorMap) got a tensor map of 128 bytes: map wants 64 "
      "bytes");
}
