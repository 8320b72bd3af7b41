// The shared parameter of attention kernels, made of checked arrays.
#pragma once

#include "jit/kernels_ahead.h"
#include "kernels_src/attention/attention.h"

#include <cstdint>
#include <vector>

namespace kernwright::kernels {

/// HeadStrides of attention.cuh, in elements.
struct HeadStrides {
  std::int64_t batch = 0, head = 0, token = 0;
};

/// AttentionCall of attention.cuh.
struct AttentionCall {
  CUdeviceptr q = 0, k = 0, v = 0, out = 0, lse = 0, partial = 0, peaks = 0;
  HeadStrides q_at{}, k_at{}, v_at{}, out_at{}, lse_at{};
  CUdeviceptr table = 0;
  std::int64_t table_row = 0;
  CUdeviceptr q_starts = 0, k_starts = 0, q_lengths = 0, k_lengths = 0, mask = 0;
  std::int64_t mask_batch = 0, mask_head = 0, mask_query = 0, mask_key = 0;
  CUdeviceptr sinks = 0, slopes = 0, k_scales = 0, v_scales = 0;
  std::uint64_t seed = 0, offset = 0;
  std::int64_t slopes_batch = 0;
  CUdeviceptr k_token_scales = 0, v_token_scales = 0;
  HeadStrides scales_at{};
  float scale = 1, soft_cap = 0;
  std::int32_t batches = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, dim = 0, value_dim = 0;
  std::int32_t left = -1, right = -1, bottom = 0, mask_kind = 0;
  std::int32_t page_size = 0, pages = 0, page_limit = 0, splits = 1, row_tiles = 1;
  std::int32_t few_queries = 0;
  std::uint32_t drop_below = 0;
  float keep_scale = 1;
};
static_assert(sizeof(AttentionCall) == 448);

/// A checked call: the kernels' parameter and the arrays behind it.
struct PreparedAttention {
  AttentionCall call{};
  Array q, k, v;
  std::vector<Array> others;  ///< lengths, mask, sinks ...
  Attended made;
  std::optional<Array> out, lse_out;   ///< where the results go, perhaps by a copy
  bool extras = false;                 ///< more than scale, window and lengths goes into a score
  int dim_class = 0, value_class = 0;  ///< the kernels' extents, perhaps beyond the elements
  std::int64_t most_queries = 0;       ///< of the longest sequence, as far as the host knows

  /// Whether all tiles of rows count as one row: of packed sequences over pages.
  bool shares_tiles() const { return call.q_starts != 0 && call.table != 0; }
  /// Tiles of `rows` rows where a query has `each`: of all sequences, or of each batch.
  std::int64_t count_tiles(std::int64_t rows, std::int64_t each) const;
  /// Sets row_tiles to count_tiles(), and gives the tiles of one head of queries or of keys.
  std::int64_t share_rows(std::int64_t rows, std::int64_t each);
  bool has_rows() const { return call.batches > 0 && call.heads > 0 && call.queries > 0; }
  /// Whether keys and values can be moved by 16 bytes; with `queries`, these too.
  bool moves_packs(bool queries) const;
  /// Tells that the work of `on` uses all arrays.
  void use_on(const Stream& on) const;
};

/// The array itself where a head's elements lie side by side, else a copy.
Array make_heads_whole(const Array& array, const Stream& on);
/// Whether a cache has a scale for each token and head: one array of scales then has the cache's
/// axes but the last.
bool have_token_scales(const std::optional<Array>& k_scales, const std::optional<Array>& v_scales);
/// Strides of scales of tokens, in elements. Throws InvalidArgument unless both arrays are float32
/// and contiguous, with the axes but the last of a cache of 8-bit elements.
HeadStrides token_scale_strides(const Array& key_cache, const std::optional<Array>& k_scales,
                                const std::optional<Array>& v_scales, bool paged);
/// Strides in elements of an array with the axes of the queries.
HeadStrides like_queries(const Array& array, bool packed);
/// Address and strides in bytes; their low bits tell the widest access.
std::uint64_t access_bits(const Array& array, const HeadStrides& at, std::int64_t dim);

/// Keys and values of caches may be pages, or have 8 bits. Those of float8 all are.
enum class AttentionOperands : std::uint8_t { arrays, caches, float8 };

/// Checks the arguments. Throws ArgumentError and InvalidArgument as attention() and
/// decode_attention() do.
PreparedAttention prepare_attention(const Array& query, const Array& key, const Array& value,
                                    const AttentionOptions& options, AttentionOperands operands,
                                    const Stream& on);

/// Memory of the result. Throws InvalidArgument for an `out` that does not fit.
void allocate_result(PreparedAttention& prepared, const AttentionOptions& options,
                     const Stream& on);
/// The result, all work for which is queued.
Attended deliver_result(const PreparedAttention& prepared, const Stream& on);
/// The result is `out`, of attention()'s shape, and contiguous logarithms.
void set_result(PreparedAttention& prepared, Array out, std::optional<Array> lse, bool packed);

/// Blocks with shared contexts, on matrix units; `splits` as below.
void launch_decode(PreparedAttention& prepared, std::int64_t splits, const Stream& on);
/// Rows of queries and heads by plain multiplications, for float32. `splits`: of the context; 0: as
/// many as the device needs.
void launch_plain_attention(PreparedAttention& prepared, std::int64_t splits, const Stream& on);

/// How many blocks share a context of `steps` parts, where `blocks` come without splits.
std::int64_t choose_splits(const Device& device, std::int64_t blocks, std::int64_t steps);
/// Sets the splits, and gives the memory of their results. Throws InvalidArgument for none or too
/// many.
Array allocate_splits(PreparedAttention& prepared, std::int64_t splits, const Stream& on);
/// Begins to compile what launch_combine() launches; null where there is one split.
const LazyKernel* begin_combine(KernelsAhead& kernels, const PreparedAttention& prepared);
/// Puts the results of several splits together. `kernel` is what begin_combine() of the same
/// `kernels` gave.
void launch_combine(const PreparedAttention& prepared, const LazyKernel* kernel,
                    KernelsAhead& kernels, const Stream& on);

}  // namespace kernwright::kernels
