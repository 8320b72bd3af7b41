// Shared by products of groups, forward and of gradients.
#pragma once

#include "kernels_src/gemm/gemm_kernels.h"
#include "kernels_src/gemm/gemm_layout.h"
#include "kernels_src/gemm/gemm_maps.h"
#include "kernels_src/gemm/grouped/grouped_gemm.h"

#include <functional>

namespace kernwright::kernels {

inline constexpr std::size_t kMostGroupedShared = 232448;

/// `array` in two dimensions: all in front of the last become one.
Array as_grouped_rows(const Array& array, const Stream& on);
/// Bytes of the groups' table in shared memory.
std::size_t table_bytes(std::int64_t groups);
/// Rows of scales that a TMA tile of promoted_gemm.cu has more than its tile: a TMA tile begins on
/// 16 bytes.
inline constexpr int kGroupedSkews = 4;
/// The bytes of promoted_gemm.cu's scales beside GemmTile::shared_bytes(): places of stages begin
/// at multiples of 128 bytes.
std::size_t skew_bytes(const GemmTile& tile);
int multiprocessor_count(const Array& array);

/// Throws InvalidArgument and ArgumentError unless there are numbers of `count` groups of x.
void require_groups(const RowGroups& groups, std::int64_t count, const Array& x);
void require_grouped_type(const Array& array, const char* name);
void require_grouped_device(const Array& array);

ProductGroups product_groups(const RowGroups& groups, const Array& numbers, std::int64_t rows,
                             std::int64_t capacity);
/// Throws InvalidArgument for excessive sizes.
GemmLayout grouped_layout(const GemmOperand& a, const GemmOperand& b);

MmaSide mma_side(const GemmOperand& operand, std::int64_t stride, std::int64_t step,
                 std::int64_t lines, std::int64_t length);
/// One matrix: `rows` lines of `dense` numbers.
CUtensorMap line_map(const Array& array, std::int64_t rows, std::int64_t dense, std::int64_t stride,
                     int tma_rows);
/// One matrix of 16-bit numbers for store_rows() of product_store.cuh, whose TMA tiles end inside
/// of it: axis 1 has 16 rows, axis 0 tells where they end, the rows in front of it counted.
CUtensorMap ragged_map(const Array& array, std::int64_t rows, std::int64_t columns);
/// Leaves a place in shared memory for the table of groups; it takes the place of stages.
void leave_table(GemmTile& tile, std::int64_t groups, bool block_scales = false);

/// The gate of a product of `shape`, (rows, n), which is stored as float32: (rows, n / 2) of
/// `type`. `run` computes the product with the rest of the epilogue.
Array gate_product(Device& device, const Shape& shape, const ProductEpilogue& ending,
                   ScalarType type, const Stream& on,
                   const std::function<void(const Array&, const ProductEpilogue&)>& run);

}  // namespace kernwright::kernels
