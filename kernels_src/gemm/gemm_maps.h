// Tensor maps of matrices, made once for each place in memory.
#pragma once

#include "array/array.h"
#include "base/scalar_type.h"
#include "driver/driver_api.h"

#include <array>
#include <cstdint>

namespace kernwright::kernels {

/// Matrices in two dimensions of a batch, the outermost first; the last extent's elements follow
/// each other. Strides in bytes, multiples of 16.
struct MapSubject {
  CUdeviceptr address = 0;
  std::array<std::int64_t, 4> shape{1, 1, 1, 1};
  std::array<std::int64_t, 4> strides{};
  ScalarType type = ScalarType::bfloat16;
  std::uint32_t tma_rows = 64;
  std::uint32_t tma_columns = 64;  ///< 128 bytes where they are swizzled
  bool swizzled = true;
  int rank = 4;  ///< 3: without the outermost
  bool operator==(const MapSubject&) const = default;
};

/// Of operands: `EdgeMaps` of include/product/product_stages.cuh.
struct GemmEdgeMaps {
  CUtensorMap a, b;
};

/// The descriptor: a value, right as long as something lies at the address. Thread-safe. Throws as
/// TensorMap::tiled().
CUtensorMap gemm_map(Device& device, const MapSubject& subject);
/// The map of scales (rows, blocks) with dense columns: a TMA tile has the scales of rows in one
/// block.
CUtensorMap scales_map(const Array& scales, int tma_rows);

}  // namespace kernwright::kernels
