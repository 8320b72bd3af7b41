// The rules of arrays, textures and surfaces against a device with small limits.
#include "driver/texture_parameters.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

/// Every limit is 100, but for alignments.
struct Small final : DeviceLimits {
  int attribute(CUdevice_attribute which) const override {
    if (which == CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) return 512;
    return which == CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT ? 32 : 100;
  }
};

std::string problem(const CUDA_ARRAY3D_DESCRIPTOR& array) { return check_array(array, Small{}); }

}  // namespace

TEST_CASE("texture rules: elements") {
  CHECK(texel_bytes(CU_AD_FORMAT_UNSIGNED_INT8, 4) == 4);
  CHECK(texel_bytes(CU_AD_FORMAT_HALF, 2) == 4);
  CHECK(texel_bytes(CU_AD_FORMAT_FLOAT, 4) == 16);
  CHECK(texel_bytes(CU_AD_FORMAT_FLOAT, 3) == 0);
  CHECK(texel_bytes(0, 1) == 0);
  CHECK(is_floating_texel(CU_AD_FORMAT_HALF));
  CHECK_FALSE(is_floating_texel(CU_AD_FORMAT_SIGNED_INT32));
}

TEST_CASE("texture rules: kinds of array") {
  struct Kind {
    CUDA_ARRAY3D_DESCRIPTOR array;
    int rank;
    std::uint64_t layers;
    const char* text;
  };
  const auto f = CU_AD_FORMAT_FLOAT;
  for (const Kind& kind : {
           Kind{{9, 0, 0, f, 1, 0}, 1, 1, "a 1-D array of (9) elements"},
           Kind{{9, 8, 0, f, 1, 0}, 2, 1, "a 2-D array of (8, 9) elements"},
           Kind{{9, 8, 7, f, 1, 0}, 3, 1, "a 3-D array of (7, 8, 9) elements"},
           Kind{{9, 0, 7, f, 1, kArrayLayered}, 1, 7, "a layered 1-D array of (7, 9) elements"},
           Kind{{9, 8, 7, f, 1, kArrayLayered}, 2, 7, "a layered 2-D array of (7, 8, 9) elements"},
           Kind{{9, 9, 6, f, 1, kArrayCubemap}, 2, 6, "a cubemap array of (6, 9, 9) elements"},
           Kind{{9, 9, 12, f, 1, kArrayCubemap | kArrayLayered},
                2,
                12,
                "a layered cubemap array of (12, 9, 9) elements"},
       }) {
    CAPTURE(kind.text);
    CHECK(problem(kind.array).empty());
    CHECK(array_rank(kind.array) == kind.rank);
    CHECK(array_layers(kind.array) == kind.layers);
    CHECK(describe_array(kind.array) == kind.text);
  }
}

TEST_CASE("texture rules: the device's limits of each axis") {
  const auto f = CU_AD_FORMAT_FLOAT;
  CHECK(problem({100, 100, 100, f, 1, 0}).empty());
  CHECK(problem({101, 0, 0, f, 1, 0}) == "a width of 101 is above the device's limit of 100");
  CHECK(problem({9, 101, 0, f, 1, 0}) == "a height of 101 is above the device's limit of 100");
  CHECK(problem({9, 9, 101, f, 1, 0}) == "a depth of 101 is above the device's limit of 100");
  CHECK(problem({9, 0, 101, f, 1, kArrayLayered}) ==
        "a number of layers of 101 is above the device's limit of 100");
  CHECK(problem({9, 9, 102, f, 1, kArrayCubemap | kArrayLayered}) ==
        "a number of layers of 102 is above the device's limit of 100");
  CHECK(problem({9, 9, 0, f, 1, kArrayGather | kArraySurface}).empty());
}
