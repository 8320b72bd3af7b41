// The instances of gemm.cu and finish_product.cu, and the begin of their parameters.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"
#include "jit/kernels_ahead.h"
#include "jit/program.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/gemm/gemm.h"

#include <cstdint>
#include <utility>

namespace kernwright::kernels {

/// As in include/product/product_epilogue.cuh.
struct GemmScaleValues {
  CUdeviceptr data = 0;
  std::int32_t step = 0;
};
struct GemmEpilogueValues {
  CUdeviceptr bias = 0, c = 0;
  GemmScaleValues row_scales{}, column_scales{};
  float alpha = 1, beta = 1;
  Knobs<float> knobs{ActivationCall{}};
};
GemmEpilogueValues gemm_epilogue_values(const GemmEpilogue& epilogue);

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
enum class GemmSums : std::uint8_t { direct, promoted, block_scaled };

struct GemmInstance {
  ScalarType a, b, out;
  GemmTile tile;
  bool turn_a, turn_b;
  GemmStore store;
  GemmSums sums = GemmSums::direct;
  ProductWork work = ProductWork::whole;  ///< grouped_inside in direct sums alone
};
const LazyKernel& gemm_kernel(const GemmInstance& instance, const GemmEpilogue& epilogue);

struct MmaInstance {
  ScalarType in, out;
  MmaTile tile;
  bool turn_a, turn_b;
  bool block_scaled = false;              ///< with scales
  ProductWork work = ProductWork::whole;  ///< another one without scales alone
};
const LazyKernel& mma_kernel(const MmaInstance& instance, const GemmEpilogue& epilogue);

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
const LazyKernel& fma_kernel(const FmaInstance& instance, const GemmEpilogue& epilogue);

/// Whether all sums have one scale, which gemm.cu and promoted_gemm.cu then read once.
bool has_one_scale(const GemmEpilogue& epilogue);
/// Whether gemm.cu has the activation or gate, where it is compiled once for each sum of a thread.
bool has_short_epilogue(const GemmEpilogue& epilogue);

/// Adds up `parts` of sums in their order, each part as large as `result`, and does the rest of the
/// work; for float64 there is none. `kernel` is what begin_finish() of these `kernels` gave.
void finish_sums(const Array& sums, const Array& result, const GemmEpilogue& epilogue, int parts,
                 const LazyKernel* kernel, KernelsAhead& kernels, const Stream& on);
/// Begins to compile what finish_sums() launches; null where that is none of ours, for float64.
const LazyKernel* begin_finish(KernelsAhead& kernels, const Array& result,
                               const GemmEpilogue& epilogue);

/// How a product ends. `launch_on(target, ending, kernels)` makes the finished result if `at_once`
/// and there is one part. Else it makes plain sums of the shape (parts, ...), and finish_sums() the
/// result.
template <typename LaunchOn>
void run_product(const Array& result, const GemmEpilogue& epilogue, bool at_once, Shape sums_shape,
                 const Stream& on, const LaunchOn& launch_on) {
  const auto parts = static_cast<int>(sums_shape.front());
  KernelsAhead kernels;
  if (at_once && parts == 1) return launch_on(result, epilogue, kernels);
  const bool wide = result.type() == ScalarType::float64;
  const Array sums = Array::empty(result.device(), std::move(sums_shape),
                                  wide ? ScalarType::float64 : ScalarType::float32, on);
  const LazyKernel* const finish = begin_finish(kernels, result, epilogue);
  launch_on(sums, GemmEpilogue{}, kernels);
  finish_sums(sums, result, epilogue, parts, finish, kernels, on);
}

}  // namespace kernwright::kernels
