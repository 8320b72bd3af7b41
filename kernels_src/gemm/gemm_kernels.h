// The instances of the kernels of tiles, and their parameters.
#pragma once

#include "base/math.h"
#include "driver/driver_api.h"
#include "jit/program.h"
#include "kernels_src/epilogue/epilogue_values.h"
#include "kernels_src/gemm/gemm.h"

#include <cstdint>

namespace kernwright::kernels {

/// The parts that an extent has, as a problem counts them.
constexpr std::int32_t part_count(std::int64_t extent, std::int64_t part) {
  return static_cast<std::int32_t>(ceil_div(extent, part));
}

/// As in include/product/product_stages.cuh.
struct GemmProblem {
  std::int32_t rows, columns, steps, split_steps, row_tiles, column_tiles, group, batches, splits,
      inner_batches, a_inner, a_outer, b_inner, b_outer, short_rows, narrow_columns;
};
/// As in mma_gemm.cu.
struct MmaSide {
  CUdeviceptr data;
  std::int64_t stride, inner_step, outer_step, lines, line_bytes;
};
struct MmaProblem {
  std::int32_t rows, columns, steps, split_steps, row_tiles, column_tiles, group, batches, splits,
      inner_batches;
};

/// `BlockScales` of promoted_gemm.cu; steps in elements.
struct GemmBlockValues {
  CUdeviceptr b = 0;
  std::int64_t column_step = 0, inner_step = 0, matrix_step = 0, half = 0;
  std::int32_t last_column = 0;
};

/// The problem type of an instance, see include/product/product_tiles.cuh: a Problem,
/// Grouped<Problem>, GroupedInside<Problem>.
enum class ProductWork : std::uint8_t { whole, grouped, grouped_inside };
/// `GroupKind` there.
enum class GroupKind : std::int32_t { ends, offsets, counts, apart };
/// As there.
struct ProductGroups {
  CUdeviceptr numbers;
  GroupKind kind;
  std::int32_t count, rows;
  CUdeviceptr next;
};
template <typename Problem>
struct GroupedProblem {
  Problem sizes;
  ProductGroups groups;
};

/// `Store` of gemm.cu.
enum class GemmStore : std::uint8_t { by_copies, by_elements, direct };
/// Accumulators over all of k, or of each stage apart (promoted_gemm.cu), with scales of blocks.
enum class GemmAccumulation : std::uint8_t { direct, promoted, block_scaled };

struct GemmInstance {
  ScalarType a, b, out;
  GemmTile tile;
  bool turn_a, turn_b;
  GemmStore store;
  GemmAccumulation accumulation = GemmAccumulation::direct;
  ProductWork work = ProductWork::whole;  ///< grouped_inside with direct accumulation alone
};
const LazyKernel& gemm_kernel(const GemmInstance& instance, const ProductEpilogue& epilogue);

struct MmaInstance {
  ScalarType in, out;
  MmaTile tile;
  bool turn_a, turn_b;
  bool block_scaled = false;              ///< with scales
  ProductWork work = ProductWork::whole;  ///< another one without scales alone
};
const LazyKernel& mma_kernel(const MmaInstance& instance, const ProductEpilogue& epilogue);

/// As in fma_gemm.cu.
struct FmaSide {
  CUdeviceptr data;
  std::int64_t line, step;
};
struct FmaProblem {
  std::int32_t rows, columns, steps, split_steps, row_tiles, column_tiles, group, batches, splits,
      packs;
};
/// `Way` of fma_gemm.cu.
enum class FmaWay : std::uint8_t { packs, across, along };

struct FmaInstance {
  ScalarType in, out;
  FmaTile tile;
  FmaWay way_a, way_b;
  bool whole;                             ///< kWhole of fma_gemm.cu
  ProductWork work = ProductWork::whole;  ///< products of groups are never whole
};
const LazyKernel& fma_kernel(const FmaInstance& instance, const ProductEpilogue& epilogue);

}  // namespace kernwright::kernels
