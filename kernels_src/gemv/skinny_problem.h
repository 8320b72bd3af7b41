// What the kernels of products with few rows, and those of packed weights, are told of a product.
#pragma once

#include "driver/driver_api.h"
#include "kernels_src/epilogue/epilogue_values.h"

#include <cstdint>

namespace kernwright::kernels {

/// As in skinny.cuh.
struct SkinnyProblem {
  CUdeviceptr x = 0, out = 0, partial = 0, norm = 0;
  std::int64_t x_row = 0, x_batch = 0;
  std::uint64_t batches = 1;
  std::uint32_t m = 0, n = 0, k = 0, splits = 1, ahead = 0;
  float eps = 0;
  ProductEpilogueValues epilogue{};
};

}  // namespace kernwright::kernels
