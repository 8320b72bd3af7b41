// How the rows of arrays are shared among threads: packs, values in registers, blocks, chunks.
#pragma once

#include "array/array.h"
#include "core/device.h"
#include "core/launch/launch_config.h"
#include "kernels_src/walk_plan.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace kernwright::kernels {

/// Floating types that are computed in float or, float64, in double.
bool is_computed(ScalarType type) noexcept;
/// Throws InvalidArgument, with `what` ("softmax()") and `name` ("x"), for all other types.
void require_computed(const Array& array, const char* what, const char* name);

/// A view [..., n] whose elements lie side by side, cut into rows.
struct RowExtent {
  std::int64_t rows = 0;
  std::int64_t n = 0;
};

/// The rows of two views with one leading shape: the last `inner_dims` axes lie inside of a row.
/// Nothing when the walk needs more than kWalkDims dimensions.
std::optional<Walk<2>> pair_rows(const Array& first, const Array& second, int inner_dims = 1);

/// Elements of up to 16 bytes that one load can move in each of the arrays: each row of `n` of them
/// begins at a multiple of the pack, and holds whole packs. Axes before the last `inner_dims` lead
/// from row to row; all are inner ones where the arrays are contiguous. 0 where elements are not
/// even aligned.
int common_pack(std::int64_t n, std::initializer_list<const Array*> arrays, int inner_dims = 1);

/// Threads of one row, and packs that each of them holds.
struct RowTile {
  int pack = 1;     ///< elements
  int items = 0;    ///< packs of a thread; 0 when the row is too long
  int width = 1;    ///< threads of a row
  int threads = 1;  ///< of a block: `width`, or several rows of part of a warp
  int rows() const noexcept { return threads / width; }
  /// Blocks for `rows` of them, which are at most 2^31 - 1 blocks.
  std::uint32_t blocks(std::int64_t rows) const noexcept;
};
/// The tile for rows of `n` elements. A thread holds `values` elements, or up to twice as many if a
/// single warp, or a block of `max_threads`, is enough then.
RowTile tile_rows(std::int64_t n, int pack, int values, int max_threads = 1024);

/// A tile for rows longer than a warp's, of any number of whole warps: few warps where there are
/// many rows, so that one row of a multiprocessor is loaded while another row is stored.
RowTile tile_rows_by_warps(const Device& device, RowExtent extent, int pack, int values);

/// Whether every thread has all `items` packs of a row, and every block all rows.
bool is_whole_tile(const RowTile& tile, RowExtent extent) noexcept;

/// Rows that the blocks of a cluster share; each block has a part of whole packs in registers.
struct RowCluster {
  int pack = 1;
  int items = 1;          ///< packs of a thread
  int threads = 1;        ///< of a block
  int blocks = 1;         ///< of a row: a power of two, at most 8
  std::int64_t part = 1;  ///< packs of a block

  /// The launch of `rows` of them.
  LaunchConfig config(std::int64_t rows, const Stream& stream) const;
};
/// Clusters whose threads hold up to `values` elements. Nothing for devices without clusters, for
/// rows too short or too long for a few blocks, and for so few rows that most of the device would
/// be idle.
std::optional<RowCluster> cluster_rows(const Device& device, RowExtent extent, int pack,
                                       int values);

/// Rows that several blocks of 256 threads share.
struct RowChunks {
  int pack = 1;
  int items = 1;             ///< packs of a thread
  std::int64_t chunks = 1;   ///< of a row
  std::uint32_t blocks = 1;  ///< of all rows
};
inline constexpr int kChunkThreads = 256;
/// Chunks with up to `values` elements for each thread, or fewer to give the device enough blocks.
RowChunks chunk_rows(const Device& device, RowExtent extent, int pack, int values);

/// Whether rows longer than 16384 are better shared by blocks, as there are fewer than half as many
/// of them as multiprocessors.
bool are_few_and_long(const Device& device, RowExtent extent);

/// The order of axes with `axis` at the end, and the inverse order.
std::vector<int> axis_last(int ndim, int axis);
std::vector<int> last_back(int ndim, int axis);

}  // namespace kernwright::kernels
