// The driver's rules for tensor maps: each broken one is named, with the axis and the values.
#include "driver/tensor_map_parameters.h"

#include "driver/driver_types.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

TensorMapParameters tiled() {
  TensorMapParameters map;
  map.address = 0x7f1234567800;
  map.rank = 3;
  map.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  map.extent = {1000, 200, 30};
  map.stride = {0, 2000 * 16, std::uint64_t{3} << 36};
  map.box = {64, 256, 3};
  map.step = {1, 2, 8};
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return map;
}

TensorMapParameters im2col() {
  TensorMapParameters map = tiled();
  map.rank = 4;
  map.extent = {64, 20, 10, 8};
  map.stride = {0, 128, 2560, 25600};
  map.step = {1, 1, 2, 1};
  map.im2col = true;
  map.box = {64};
  map.pixels = 128;
  map.lower = {-1, -2};
  map.upper = {1, -2};
  return map;
}

template <typename Change>
std::string problem(TensorMapParameters map, Change change) {
  change(map);
  return check_tensor_map(map);
}

}  // namespace

TEST_CASE("tensor map rules: good parameters break none") {
  CHECK(check_tensor_map(tiled()) == "");
  CHECK(check_tensor_map(im2col()) == "");
  using M = TensorMapParameters;
  CHECK(problem(tiled(), [](M& m) { m.extent[1] = std::uint64_t{1} << 32; }) == "");
  CHECK(problem(tiled(), [](M& m) { m.stride[2] = (std::uint64_t{1} << 40) - 16; }) == "");
  CHECK(problem(tiled(), [](M& m) { m.stride[1] = 0; }) == "");
  CHECK(problem(tiled(), [](M& m) { m.fills_nan = true; }) == "");
  CHECK(problem(im2col(), [](M& m) {
          m.lower = {-128, 127};
          m.upper = {127, 120};
        }) == "");
  CHECK(problem(im2col(), [](M& m) {
          m.pixels = 1024;
          m.box[0] = 8;
        }) == "");
}

TEST_CASE("tensor map rules: of all maps") {
  using M = TensorMapParameters;
  CHECK(problem(tiled(), [](M& m) { m.rank = 0; }) == "a tensor map has 1 to 5 axes, not 0");
  CHECK(problem(tiled(), [](M& m) { m.rank = 6; }) == "a tensor map has 1 to 5 axes, not 6");
  CHECK(problem(tiled(), [](M& m) { m.type = 13; }) == "there is no tensor map data type 13");
  CHECK(problem(tiled(), [](M& m) { m.type = -1; }) == "there is no tensor map data type -1");
  CHECK(problem(tiled(), [](M& m) {
          m.interleave = 1;
          m.swizzle = 0;
          m.box[0] = 3;
        }) == "axis 2: a box of 3 elements of 2 bytes has rows of 6 bytes, no multiple of 16");
  CHECK(problem(tiled(), [](M& m) { m.interleave = 3; }) == "there is no interleave 3");
  CHECK(problem(tiled(), [](M& m) { m.swizzle = 4; }) == "there is no swizzle 4");
  CHECK(problem(tiled(), [](M& m) { m.l2_promotion = 4; }) == "there is no L2 promotion 4");
  CHECK(problem(tiled(), [](M& m) {
          m.rank = 2;
          m.interleave = 1;
        }) == "interleave 16B needs 3 axes or more, not 2");
  CHECK(problem(tiled(), [](M& m) { m.interleave = 2; }) ==
        "interleave 32B needs swizzle 32B, not 128B");
  CHECK(problem(tiled(), [](M& m) {
          m.type = 1;
          m.fills_nan = true;
        }) == "only elements of a floating-point type can be filled with NaN");
  CHECK(problem(tiled(), [](M& m) { m.address += 8; }) ==
        "the address 0x7f1234567808 is no multiple of 16 bytes");
  CHECK(problem(tiled(), [](M& m) {
          m.interleave = 2;
          m.swizzle = 1;
          m.address += 16;
        }) == "the address 0x7f1234567810 is no multiple of 32 bytes");
}

TEST_CASE("tensor map rules: of an axis, counted as arrays do") {
  using M = TensorMapParameters;
  CHECK(problem(tiled(), [](M& m) { m.extent[2] = 0; }) ==
        "axis 0: an extent of 0 is not in 1 to 2^32");
  CHECK(problem(tiled(), [](M& m) { m.extent[0] = (std::uint64_t{1} << 32) + 1; }) ==
        "axis 2: an extent of 4294967297 is not in 1 to 2^32");
  CHECK(problem(tiled(), [](M& m) { m.stride[1] += 8; }) ==
        "axis 1: a stride of 32008 bytes is no multiple of 16");
  CHECK(problem(tiled(), [](M& m) {
          m.interleave = 2;
          m.swizzle = 1;
          m.stride[1] = 48;
        }) == "axis 1: a stride of 48 bytes is no multiple of 32");
  CHECK(problem(tiled(), [](M& m) { m.stride[2] = std::uint64_t{1} << 40; }) ==
        "axis 0: a stride of 1099511627776 bytes is not below 2^40");
  CHECK(problem(tiled(), [](M& m) { m.box[1] = 257; }) ==
        "axis 1: a box of 257 elements is not in 1 to 256");
  CHECK(problem(tiled(), [](M& m) { m.box[2] = 0; }) ==
        "axis 0: a box of 0 elements is not in 1 to 256");
  CHECK(problem(tiled(), [](M& m) { m.step[2] = 9; }) ==
        "axis 0: an element stride of 9 is not in 1 to 8");
  CHECK(problem(tiled(), [](M& m) { m.step[0] = 0; }) ==
        "axis 2: an element stride of 0 is not in 1 to 8");
  CHECK(problem(tiled(), [](M& m) { m.box[0] = 63; }) ==
        "axis 2: a box of 63 elements of 2 bytes has rows of 126 bytes, no multiple of 16");
  CHECK(problem(tiled(), [](M& m) { m.box[0] = 72; }) ==
        "axis 2: a box of 72 elements of 2 bytes has rows of 144 bytes, longer than the 128 bytes "
        "of swizzle 128B");
}

TEST_CASE("tensor map rules: of im2col") {
  using M = TensorMapParameters;
  CHECK(problem(im2col(), [](M& m) { m.rank = 2; }) ==
        "an im2col tensor map has 3 to 5 axes, not 2");
  CHECK(problem(im2col(), [](M& m) { m.box[0] = 0; }) ==
        "0 channels per pixel are not in 1 to 256");
  CHECK(problem(im2col(), [](M& m) { m.box[0] = 257; }) ==
        "257 channels per pixel are not in 1 to 256");
  CHECK(problem(im2col(), [](M& m) { m.pixels = 1025; }) ==
        "1025 pixels per column are not in 1 to 1024");
  CHECK(problem(im2col(), [](M& m) { m.pixels = 0; }) ==
        "0 pixels per column are not in 1 to 1024");
  CHECK(
      problem(im2col(), [](M& m) { m.lower[1] = -129; }) ==
      "axis 1: the lower corner of the pixel box, -129, is not in -128 to 127, which 4 axes allow");
  CHECK(
      problem(im2col(), [](M& m) { m.upper[0] = 128; }) ==
      "axis 2: the upper corner of the pixel box, 128, is not in -128 to 127, which 4 axes allow");
  CHECK(problem(im2col(), [](M& m) { m.upper[1] = -12; }) ==
        "axis 1: the pixel box from -2 to -3 is empty (extent 10, upper corner -12)");
  CHECK(problem(im2col(), [](M& m) { m.step[3] = 0; }) ==
        "axis 0: an element stride of 0 is not in 1 to 8");
  CHECK(tensor_corner_limit(3) == 32768);
  CHECK(tensor_corner_limit(5) == 16);
}

TEST_CASE("tensor map rules: bytes that a copy brings") {
  CHECK(tensor_box_bytes(tiled()) == 64 * 128 * 1 * 2);
  TensorMapParameters strided = tiled();
  strided.step = {3, 3, 1};  // without an interleave the first is not looked at
  CHECK(tensor_box_bytes(strided) == 64 * 86 * 3 * 2);
  CHECK(tensor_box_bytes(im2col()) == 64 * 128 * 2);
}

TEST_CASE("tensor map rules: of slices, which the driver leaves to its caller") {
  TensorMapParameters map = tiled();
  CHECK(tensor_slice_bytes(map) == 0);
  CHECK(check_slices(map) == "");
  map.interleave = 1;
  map.box = {8, 3, 2};
  map.step = {3, 2, 1};
  CHECK(tensor_slice_bytes(map) == 16);
  CHECK(tensor_box_bytes(map) == 16 * 3 * 2);
  CHECK(check_slices(map) == "axis 1: a box of 3 slices: with an interleave a copy takes one");
  map.box[1] = 1;
  CHECK(check_slices(map) == "");
  map.interleave = 2;
  CHECK(tensor_slice_bytes(map) == 32);
  CHECK(tensor_box_bytes(map) == 32 * 3 * 2);
  map.box = {256, 1, 256};
  map.step = {1, 1, 1};
  CHECK(check_slices(map) ==
        "a box of 2097152 bytes is larger than 233472, what a multiprocessor's shared memory "
        "holds");
  TensorMapParameters columns = im2col();
  columns.interleave = 1;
  CHECK(tensor_box_bytes(columns) == 128 * 16);
  CHECK(check_slices(columns) ==
        "64 channels of 2 bytes per pixel: interleave 16B takes one slice, 16 bytes");
  columns.box[0] = 8;
  CHECK(check_slices(columns) == "");
}
