// The shape of a reduction's launches: which kernel, how wide, in how many segments.
#pragma once

#include "kernels_src/axes.h"

#include <cstddef>
#include <cstdint>

namespace kernwright::kernels {

/// The most elements in one part of a thread: this bounds the error of sums.
inline constexpr std::int64_t kLongestPart = 64;
/// Threads of a block.
inline constexpr std::int64_t kReduceBlock = 256;
/// Loads of a thread in flight at once, where it has as many.
inline constexpr int kReduceLoads = 8;

/// `RowAccess` of reduce.cu: how the elements of a row lie in memory.
enum class RowAccess : std::uint8_t {
  walked,    ///< anyhow
  aligned,   ///< one axis without gaps, packs of every row aligned
  unaligned  ///< one axis without gaps
};

/// The kernel of a reduction, and the split of the elements.
struct ReducePlan {
  bool rows = true;  ///< reduce_rows, else reduce_columns
  int pack = 1;      ///< elements of a load
  int loads = kReduceLoads;
  RowAccess access = RowAccess::walked;
  std::int64_t lanes = 1;    ///< threads of a row, or threads side by side on columns
  std::int64_t segment = 1;  ///< elements of a result for one block
  std::int64_t segments = 1;
  std::int64_t blocks = 1;
};

/// Whether a result's elements follow each other, so that rows are read, else columns.
bool reads_rows(const AxesPlan& axes);

/// Blocks that fill a multiprocessor.
inline constexpr int kReduceBlocksPerProcessor = 8;
/// Blocks of columns: one wave, so that few segments are left to be joined.
inline constexpr int kColumnBlocksPerProcessor = 4;

/// Chooses them for elements of `size` bytes on a device of `processors` multiprocessors, with
/// `blocks_each` blocks for each where there is enough to do.
ReducePlan plan_reduction(const AxesPlan& axes, std::size_t size, int processors,
                          int blocks_each = kReduceBlocksPerProcessor);

}  // namespace kernwright::kernels
